/* VARIANCE and STDDEV: number and sum of the readings, and the sum of their squares in 48 bits. All exact, so that
 * the gateway's subtraction loses nothing. */
#include "query/aggregate.h"

/* The second cell: the low 32 bits of the sum of squares in `value`, the next 16 in `count`. */
static uint64_t squares(const struct wire_aggregate_state *state)
{
    return (uint64_t)state[1].count << 32 | (uint32_t)state[1].value;
}

#define SQUARES_MOST ((1ULL << 48) - 1)

static bool keep_squares(struct wire_aggregate_state *state, uint64_t sum)
{
    state[1].count = (uint16_t)(sum >> 32);
    state[1].value = (int32_t)(uint32_t)sum;
    return sum >> 48 == 0;
}

static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)cells, (void)node;
    uint32_t size = reading < 0 ? 0U - (uint32_t)reading : (uint32_t)reading;
    state[0].count = 1;
    state[0].value = reading;
    /* What is too large for 48 bits overflows with the next reading; of one alone the variance is 0 in any case. */
    keep_squares(state, size >> 24 ? SQUARES_MOST : (uint64_t)size * size);
}

static bool add(struct wire_aggregate_state *into, const struct wire_aggregate_state *from, uint8_t cells)
{
    (void)cells;
    bool fits = keep_squares(into, squares(into) + squares(from));
    return aggregate_add(into, from) && fits;
}

const struct aggregate aggregate_variance = {2, begin, add};
