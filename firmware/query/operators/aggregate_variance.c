/* VARIANCE and STDDEV: number and sum of the readings, and the sum of their squares in 48 bits. All
 * exact, so that the gateway's subtraction loses nothing. */
#include "lib/wide.h"
#include "query/operators/aggregate.h"

/* The second cell: the low 32 bits of the sum of squares in `value`, the next 16 in `count`. */
static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)cells, (void)node;
    uint32_t size = wide_magnitude(reading);
    /* What is too large for 48 bits is merged with no other reading, be it 0: all bits set are no
     * sum. The gateway has the square of one reading from its sum. */
    uint64_t square = size >> 24 ? UINT64_MAX : (uint64_t)size * size;
    state[0].count = 1;
    state[0].value = reading;
    state[1].count = (uint16_t)(square >> 32);
    state[1].value = (int32_t)(uint32_t)square;
}

static bool add(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                uint8_t cells)
{
    (void)cells;
    uint32_t low = (uint32_t)into[1].value + (uint32_t)from[1].value;
    uint32_t high = (uint32_t)into[1].count + from[1].count + (low < (uint32_t)from[1].value);
    into[1].value = (int32_t)low;
    into[1].count = (uint16_t)high;
    return aggregate_add(into, from) && high + (low == UINT32_MAX) <= UINT16_MAX;
}

const IN_FLASH struct aggregate aggregate_variance = {2, begin, add};
