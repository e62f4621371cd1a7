#include "index/box.h"

#define POINT_BITS 16

void index_box_all(struct index_box *box, uint8_t attributes)
{
    box->attributes = attributes;
    for (uint8_t i = 0; i < attributes; i++) {
        box->low[i] = 0;
        box->high[i] = INDEX_NULL;
    }
}

bool index_box_limit(struct index_box *box, uint8_t attribute, const struct index_range *range,
                     int32_t low, int32_t high)
{
    if (low > high)
        return false;
    box->low[attribute] = index_point(range, low);
    box->high[attribute] = index_point(range, high);
    return true;
}

/* Every how many of a code's bits are one attribute's: as a point, from the highest on. */
static uint16_t gathered(uint32_t bits, uint8_t attribute, uint8_t attributes)
{
    uint16_t point = 0;
    for (uint8_t level = 0; level < POINT_BITS; level++) {
        uint16_t bit = (uint16_t)(attribute + level * attributes);
        point = (uint16_t)(point << 1);
        if (bit < ZONE_BITS && bits >> (ZONE_BITS - 1 - bit) & 1)
            point |= 1;
    }
    return point;
}

/* Whether one of the points low to high is `point` where `any` has a 0. */
static bool within(uint16_t point, uint16_t any, uint16_t low, uint16_t high)
{
    uint16_t fixed = (uint16_t)~any, least = point & fixed;
    /* The least such point that is not below `low`: it begins as `low` does, for as long as it can,
     * then has a 1 for a 0, and behind it the least. */
    for (uint8_t kept = POINT_BITS + 1; kept-- > 0;) {
        uint16_t head = (uint16_t)((uint32_t)0xFFFF << (POINT_BITS - kept));
        if ((low ^ point) & fixed & head)
            continue;
        uint16_t found = (uint16_t)((low & head) | (least & (uint16_t)~head));
        if (kept < POINT_BITS) {
            uint16_t bit = (uint16_t)(1U << (POINT_BITS - 1 - kept));
            if (low & bit || (fixed & bit && !(point & bit)))
                continue;
            found |= bit;
        }
        return found <= high;
    }
    return false;
}

bool index_asks_owner(const struct index_box *box, const struct zone_owned *owned)
{
    for (uint8_t i = 0; i < box->attributes; i++) {
        /* Bits that no code has are 0 in tuples' codes, and need not be looked at. */
        uint16_t point = gathered(owned->code, i, box->attributes);
        uint16_t fixed = gathered(~owned->any, i, box->attributes);
        if (!within(point, (uint16_t)~fixed, box->low[i], box->high[i]))
            return false;
    }
    return true;
}

enum index_cover index_covers(const struct index_box *box, const struct zone *zone)
{
    enum index_cover cover = INDEX_ALL;
    for (uint8_t i = 0; i < box->attributes; i++) {
        uint16_t low = gathered(zone->code, i, box->attributes);
        uint16_t fixed = gathered(zone_prefix(zone->length), i, box->attributes);
        uint16_t high = (uint16_t)(low | (uint16_t)~fixed);
        if (high < box->low[i] || low > box->high[i])
            return INDEX_NONE;
        if (low < box->low[i] || high > box->high[i])
            cover = INDEX_SOME;
    }
    return cover;
}

void index_walk_begin(struct index_walk *walk, const struct index_box *box, uint8_t depth)
{
    walk->box = box;
    walk->next = (struct zone){0, 0};
    walk->depth = depth;
    walk->done = false;
}

/* To the next zone that is not part of this one. */
static void pass(struct index_walk *walk)
{
    struct zone *next = &walk->next;
    /* Out of upper halves, then over to the upper one. */
    while (next->length > 0 && next->code >> (ZONE_BITS - next->length) & 1)
        next->code &= zone_prefix(--next->length);
    if (next->length == 0)
        walk->done = true;
    else
        next->code |= (uint32_t)1 << (ZONE_BITS - next->length);
}

bool index_walk_next(struct index_walk *walk, struct zone *zone)
{
    while (!walk->done) {
        enum index_cover cover = index_covers(walk->box, &walk->next);
        if (cover == INDEX_SOME && walk->next.length < walk->depth) {
            walk->next.length++; /* its lower half */
            continue;
        }
        *zone = walk->next;
        pass(walk);
        if (cover != INDEX_NONE)
            return true;
    }
    return false;
}
