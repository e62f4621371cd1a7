#include "index/zone.h"

uint32_t zone_code(const struct zone_field *field, int32_t x, int32_t y)
{
    struct zone_field area = *field;
    uint32_t code = 0;
    for (uint8_t bit = 0; bit < ZONE_BITS; bit++) {
        bool upper = (bit % 2 == 0 ? x : y) >= zone_middle(&area, bit);
        code = code << 1 | upper;
        zone_halve(&area, bit, upper);
    }
    return code;
}

void zone_area(const struct zone_field *field, const struct zone *zone, struct zone_field *area)
{
    *area = *field;
    for (uint8_t bit = 0; bit < zone->length; bit++)
        zone_halve(area, bit, zone->code >> (ZONE_BITS - 1 - bit) & 1);
}

void zone_own_all(struct zone_owned *owned, uint32_t code)
{
    owned->code = code;
    owned->any = UINT32_MAX;
}

/* The highest bit in which two codes differ; 0 where they are the same. */
static uint32_t parting(uint32_t one, uint32_t other)
{
    uint32_t differing = one ^ other;
    /* The lowest one falls away each time: the highest is left. */
    while (differing & (differing - 1))
        differing &= differing - 1;
    return differing;
}

bool zone_leave(struct zone_owned *owned, uint32_t other)
{
    uint32_t bit = parting(owned->code, other);
    owned->any &= ~bit;
    return bit != 0;
}

struct zone zone_of_owner(const struct zone_owned *owned)
{
    /* Up to the last halving whose other half has a mote. */
    struct zone zone = {0, ZONE_BITS};
    while (zone.length > 0 && owned->any >> (ZONE_BITS - zone.length) & 1)
        zone.length--;
    zone.code = owned->code & zone_prefix(zone.length);
    return zone;
}
