#include "index/point.h"

#include <stdbool.h>

#include "index/halving.h"
#include "lib/wide.h"

#define POINT_BITS 16

uint16_t index_point(const struct index_range *range, int32_t value)
{
    if (value <= range->low)
        return 0;
    if (value > range->high)
        return INDEX_LAST;
    uint32_t quotient, rest, span = wide_distance(range->low, range->high);
    /* The greatest value has the last point: nothing beyond it has another. */
    if (!wide_divide((uint64_t)wide_distance(range->low, value) * INDEX_LAST, span, &quotient,
                     &rest))
        return INDEX_LAST;
    return (uint16_t)quotient;
}

uint32_t index_code(const uint16_t *points, uint8_t attributes)
{
    uint32_t code = 0;
    uint8_t attribute = 0, level = 0;
    for (uint8_t bit = 0; bit < ZONE_BITS; bit++) {
        bool upper = level < POINT_BITS && points[attribute] >> (POINT_BITS - 1 - level) & 1;
        code = code << 1 | upper;
        if (++attribute == attributes) {
            attribute = 0;
            level++;
        }
    }
    return code;
}
