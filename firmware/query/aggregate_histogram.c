/* HISTOGRAM: how many readings fall into each bin. The field's code gives the bin; readings beyond either end go to the bin there.
 * A cell holds three bins: `count`, and the low and the high half of `value`. */
#include "query/aggregate.h"

#define BINS_OF_CELL 3

static uint16_t low_half(const struct wire_aggregate_state *cell) { return (uint16_t)(uint32_t)cell->value; }
static uint16_t high_half(const struct wire_aggregate_state *cell) { return (uint16_t)((uint32_t)cell->value >> 16); }

static void keep(struct wire_aggregate_state *cell, uint16_t count, uint16_t low, uint16_t high)
{
    cell->count = count;
    cell->value = (int32_t)((uint32_t)high << 16 | low);
}

static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)node;
    uint8_t last = (uint8_t)(cells * BINS_OF_CELL - 1);
    uint8_t bin = reading < 0 ? 0 : reading > last ? last : (uint8_t)reading;
    uint8_t part = bin % BINS_OF_CELL;
    keep(&state[bin / BINS_OF_CELL], part == 0, part == 1, part == 2);
}

static bool add(struct wire_aggregate_state *into, const struct wire_aggregate_state *from, uint8_t cells)
{
    for (uint8_t i = 0; i < cells; i++)
        keep(&into[i], aggregate_counts(into[i].count, from[i].count), aggregate_counts(low_half(&into[i]), low_half(&from[i])),
             aggregate_counts(high_half(&into[i]), high_half(&from[i])));
    return true;
}

const struct aggregate aggregate_histogram = {0, begin, add};
