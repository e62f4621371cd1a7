/* MIN and MAX. */
#include "query/aggregate.h"

static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)cells, (void)node;
    state->count = 1;
    state->value = reading;
}

static bool smaller(struct wire_aggregate_state *into, const struct wire_aggregate_state *from, uint8_t cells)
{
    (void)cells;
    if (!aggregate_one_sided(into, from) && from->value < into->value)
        into->value = from->value;
    return true;
}

static bool larger(struct wire_aggregate_state *into, const struct wire_aggregate_state *from, uint8_t cells)
{
    (void)cells;
    if (!aggregate_one_sided(into, from) && from->value > into->value)
        into->value = from->value;
    return true;
}

const struct aggregate aggregate_minimum = {1, begin, smaller};
const struct aggregate aggregate_maximum = {1, begin, larger};
