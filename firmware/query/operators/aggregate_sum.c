/* COUNT, SUM and AVG: states that add up. The count itself is in every state, so COUNT keeps no
 * value. */
#include "query/operators/aggregate.h"

static void begin_count(struct wire_aggregate_state *state, uint8_t cells, int32_t reading,
                        uint16_t node)
{
    (void)cells, (void)reading, (void)node;
    state->count = 1;
}

static bool count(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                  uint8_t cells)
{
    (void)cells;
    return !__builtin_add_overflow(into->count, from->count, &into->count);
}

static bool add(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                uint8_t cells)
{
    (void)cells;
    return aggregate_add(into, from);
}

const IN_FLASH struct aggregate aggregate_count = {1, begin_count, count};
const IN_FLASH struct aggregate aggregate_sum = {1, aggregate_begin, add};
