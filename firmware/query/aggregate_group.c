/* GROUP: no aggregate, but what tells the states of one group from another's. Only equal ones are merged. */
#include "query/aggregate.h"

static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)cells, (void)node;
    state->count = 1;
    state->value = reading;
}

static bool same(struct wire_aggregate_state *into, const struct wire_aggregate_state *from, uint8_t cells)
{
    (void)cells;
    aggregate_one_sided(into, from);
    return true;
}

const struct aggregate aggregate_group = {1, begin, same};
