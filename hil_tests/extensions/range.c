/* RANGE(a): the largest reading less the smallest. */
#include "query/operators/aggregate.h"

AGGREGATE(range, 16, 2, 0, EXEMPLARY | MONOTONIC)

static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)cells, (void)node;
    state[0] = state[1] = (struct wire_aggregate_state){1, reading};
}

static bool merge(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                  uint8_t cells)
{
    (void)cells;
    if (from[0].count > 0 && (into[0].count == 0 || from[0].value < into[0].value))
        into[0].value = from[0].value;
    if (from[1].count > 0 && (into[1].count == 0 || from[1].value > into[1].value))
        into[1].value = from[1].value;
    into[0].count = into[1].count = aggregate_counts(into[0].count, from[0].count);
    return true;
}

bool aggregate_range_evaluate(const struct wire_aggregate_state *state, uint8_t cells,
                              int64_t *value)
{
    (void)cells;
    *value = (int64_t)state[1].value - state[0].value;
    return state[0].count > 0;
}

const IN_FLASH struct aggregate aggregate_range = {2, begin, merge};
