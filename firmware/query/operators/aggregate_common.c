/* What the merges of several aggregates share. */
#include "lib/wide.h"
#include "query/operators/aggregate.h"

void aggregate_begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading,
                     uint16_t node)
{
    (void)cells, (void)node;
    state->count = 1;
    state->value = reading;
}

uint16_t aggregate_counts(uint16_t a, uint16_t b)
{
    return a > UINT16_MAX - b ? UINT16_MAX : (uint16_t)(a + b);
}

bool aggregate_one_sided(struct wire_aggregate_state *into, const struct wire_aggregate_state *from)
{
    bool one_sided = into->count == 0 || from->count == 0;
    if (into->count == 0)
        into->value = from->value;
    into->count = aggregate_counts(into->count, from->count);
    return one_sided;
}

bool aggregate_add(struct wire_aggregate_state *into, const struct wire_aggregate_state *from)
{
    int32_t sum;
    /* A state over no reading has no sum, or is the difference that a late one makes
     * (query/approximate). */
    if (__builtin_add_overflow(into->count, from->count, &into->count) ||
        !wide_sum(into->value, from->value, &sum))
        return false;
    into->value = sum;
    return true;
}
