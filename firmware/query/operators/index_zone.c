#include "query/operators/index_zone.h"

#ifdef BOARD_TUPLES

#include "drivers/settings.h"

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

#endif
