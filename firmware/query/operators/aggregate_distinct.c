/* COUNT DISTINCT: linear counting (Whang, Vander-Zanden, Taylor 1990). Each reading sets one of 48
 * bits a cell, by a hash; the gateway reckons from the share of bits that are clear how many
 * different readings there were. */
#include "query/operators/aggregate.h"

#define BITS_OF_CELL 48

/* Mixes all bits: a finaliser of two multiplications and three shifts. */
static uint32_t hash(uint32_t value)
{
    value = (value ^ value >> 16) * 0x7FEB352DUL;
    value = (value ^ value >> 15) * 0x846CA68BUL;
    return value ^ value >> 16;
}

static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)node;
    uint16_t bit = (uint16_t)(hash((uint32_t)reading) % (uint16_t)(cells * BITS_OF_CELL));
    struct wire_aggregate_state *cell = &state[bit / BITS_OF_CELL];
    uint8_t within = (uint8_t)(bit % BITS_OF_CELL);
    if (within < 32)
        cell->value = (int32_t)((uint32_t)1 << within);
    else
        cell->count = (uint16_t)(1U << (within - 32));
}

static bool unite(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                  uint8_t cells)
{
    uint8_t *bits = (uint8_t *)into;
    const uint8_t *others = (const uint8_t *)from;
    for (uint8_t i = (uint8_t)(cells * sizeof *into); i > 0; i--)
        *bits++ |= *others++;
    return true;
}

const IN_FLASH struct aggregate aggregate_distinct = {0, begin, unite};
