#include "query/operators/index_zone.h"

#ifdef BOARD_TUPLES

#include "drivers/settings.h"
#include "index/point.h"

#define POINT_SHIFT 4

void index_read_bounds(const uint8_t *bounds, uint8_t columns, struct index_box *box)
{
    box->attributes = columns;
    for (uint8_t i = 0; i < columns; i++, bounds += INDEX_BOUNDS_BYTES) {
        uint16_t low = (uint16_t)(bounds[0] | (bounds[1] & 0x0FU) << 8);
        uint16_t high = (uint16_t)(bounds[1] >> 4 | bounds[2] << 4);
        box->low[i] = (uint16_t)(low << POINT_SHIFT);
        box->high[i] = (uint16_t)((unsigned)high << POINT_SHIFT | ((1U << POINT_SHIFT) - 1U));
    }
}

bool index_may_store(const struct indexed_part *part, const struct index_box *box)
{
    struct zone_owned owned = {0, 0};
    bool stores = false;
    for (uint8_t i = 0; i < part->owner_count; i++)
        if (part->owners[i].node == settings()->nodeid) {
            if (i >= part->settled + part->away)
                return true;
            zone_own_all(&owned, zone_code(&part->field, part->owners[i].x, part->owners[i].y));
            stores = true;
        }
    for (uint8_t i = 0; stores && i < part->settled; i++)
        (void)zone_leave(&owned, zone_code(&part->field, part->owners[i].x, part->owners[i].y));
    return stores && index_asks_owner(box, &owned);
}

bool index_in_box(const struct indexed *index, const struct indexed_part *part,
                  const struct tuple *tuple, const struct index_box *box)
{
    if (tuple->attributes != part->columns)
        return false;
    for (uint8_t column = 0, i = 0; column < index->columns; column++) {
        if (!(part->mask >> column & 1))
            continue;
        uint16_t point = indexed_point(index, column, tuple->values[i], tuple->nulls >> i & 1);
        if (point < box->low[i] || point > box->high[i])
            return false;
        i++;
    }
    return true;
}

uint32_t index_tuple_code(const struct indexed *index, const struct indexed_part *part,
                          const struct tuple *tuple)
{
    uint16_t points[WIRE_INDEX_ATTRIBUTES_MAXIMUM];
    uint8_t count = 0;
    for (uint8_t column = 0; column < index->columns; column++)
        if (part->mask >> column & 1) {
            points[count] = indexed_point(index, column, tuple->values[count],
                                          (tuple->nulls >> count & 1) != 0);
            count++;
        }
    return index_code(points, count);
}

bool index_owned(const struct indexed_part *part, struct zone_owned *owned)
{
    uint32_t codes[ZONE_BITS];
    bool stores = false;
    for (uint8_t i = 0; i < part->owner_count; i++) {
        if (i >= part->settled && i < part->settled + part->away)
            continue;
        codes[i] = zone_code(&part->field, part->owners[i].x, part->owners[i].y);
        if (part->owners[i].node == settings()->nodeid) {
            zone_own_all(owned, codes[i]);
            stores = true;
        }
    }
    for (uint8_t i = 0; stores && i < part->owner_count; i++)
        if (i < part->settled || i >= part->settled + part->away)
            (void)zone_leave(owned, codes[i]);
    return stores;
}

#endif
