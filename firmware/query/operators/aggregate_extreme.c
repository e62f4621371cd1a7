/* MIN and MAX. */
#include "query/operators/aggregate.h"

static bool smaller(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                    uint8_t cells)
{
    (void)cells;
    if (!aggregate_one_sided(into, from) && from->value < into->value)
        into->value = from->value;
    return true;
}

static bool larger(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                   uint8_t cells)
{
    (void)cells;
    if (!aggregate_one_sided(into, from) && from->value > into->value)
        into->value = from->value;
    return true;
}

const IN_FLASH struct aggregate aggregate_minimum = {1, aggregate_begin, smaller};
const IN_FLASH struct aggregate aggregate_maximum = {1, aggregate_begin, larger};
