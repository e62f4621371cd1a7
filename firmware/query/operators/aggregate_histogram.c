/* HISTOGRAM: how many readings fall into each bin. The field's code gives the bin; readings beyond
 * either end go to the bin there. A cell holds three bins: `count`, and the low and the high half
 * of `value`. */
#include "query/operators/aggregate.h"

#define BINS_OF_CELL 3

/* Cells as they are on the wire, little-endian, are bins in a row. */
struct bin {
    uint16_t readings;
} __attribute__((packed));
_Static_assert(sizeof(struct wire_aggregate_state) == BINS_OF_CELL * sizeof(struct bin),
               "bins of a cell");

static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)node;
    uint8_t last = (uint8_t)(cells * BINS_OF_CELL - 1);
    uint8_t bin = reading < 0 ? 0 : reading > last ? last : (uint8_t)reading;
    ((struct bin *)state)[bin].readings = 1;
}

static bool add(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                uint8_t cells)
{
    struct bin *bin = (struct bin *)into;
    const struct bin *other = (const struct bin *)from;
    for (uint8_t i = (uint8_t)(cells * BINS_OF_CELL); i > 0; i--, bin++, other++)
        bin->readings = aggregate_counts(bin->readings, other->readings);
    return true;
}

const IN_FLASH struct aggregate aggregate_histogram = {0, begin, add};
