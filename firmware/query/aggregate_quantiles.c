/* MEDIAN and QUANTILE: a summary of the readings' distribution that carries its own error.
 *
 * A cell says that `count` readings lie in an interval: its low end (16 bits, signed) in the low half of `value`, its width in the
 * high half. Merging keeps all intervals while there are cells for them, so that few readings are summarised exactly; then the two
 * neighbours whose union is the least harm (readings times width) become one. Whatever was merged where, the k-th smallest reading
 * lies between the k-th smallest low end and the k-th smallest high end. */
#include "query/aggregate.h"

static int16_t low_of(const struct wire_aggregate_state *cell) { return (int16_t)(uint16_t)(uint32_t)cell->value; }
static uint16_t width_of(const struct wire_aggregate_state *cell) { return (uint16_t)((uint32_t)cell->value >> 16); }
static int32_t high_of(const struct wire_aggregate_state *cell) { return (int32_t)low_of(cell) + width_of(cell); }

static void keep(struct wire_aggregate_state *cell, uint16_t count, int16_t low, uint16_t width)
{
    cell->count = count;
    cell->value = (int32_t)((uint32_t)width << 16 | (uint16_t)low);
}

static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)cells, (void)node;
    /* The planner scales readings to 16 bits. */
    keep(state, 1, reading < INT16_MIN ? INT16_MIN : reading > INT16_MAX ? INT16_MAX : (int16_t)reading, 0);
}

static struct wire_aggregate_state joined(const struct wire_aggregate_state *a, const struct wire_aggregate_state *b)
{
    struct wire_aggregate_state both;
    int32_t high = high_of(a) > high_of(b) ? high_of(a) : high_of(b); /* a begins first */
    keep(&both, aggregate_counts(a->count, b->count), low_of(a), (uint16_t)(high - low_of(a)));
    return both;
}

/* Joins the two neighbours whose union is the least harm; the first of several. */
static void shrink(struct wire_aggregate_state *cells, uint8_t used)
{
    uint8_t best = 0;
    uint32_t least = UINT32_MAX;
    for (uint8_t i = 0; i + 1 < used; i++) {
        struct wire_aggregate_state both = joined(&cells[i], &cells[i + 1]);
        uint32_t harm = (uint32_t)both.count * width_of(&both);
        if (harm < least) {
            least = harm;
            best = i;
        }
    }
    cells[best] = joined(&cells[best], &cells[best + 1]);
    for (uint8_t i = (uint8_t)(best + 1); i + 1 < used; i++)
        cells[i] = cells[i + 1];
}

static bool before(const struct wire_aggregate_state *a, const struct wire_aggregate_state *b)
{
    return low_of(a) != low_of(b) ? low_of(a) < low_of(b) : width_of(a) < width_of(b);
}

static bool merge_summaries(struct wire_aggregate_state *into, const struct wire_aggregate_state *from, uint8_t cells)
{
    struct wire_aggregate_state all[2 * WIRE_FIELDS_MAXIMUM];
    uint8_t used = 0, a = 0, b = 0;
    while ((a < cells && into[a].count != 0) || (b < cells && from[b].count != 0)) {
        bool first = b == cells || from[b].count == 0 ||
                     (a < cells && into[a].count != 0 && !before(&from[b], &into[a]));
        const struct wire_aggregate_state *next = first ? &into[a++] : &from[b++];
        /* Equal ones are one: nothing is lost by that. */
        if (used > 0 && all[used - 1].value == next->value)
            all[used - 1].count = aggregate_counts(all[used - 1].count, next->count);
        else
            all[used++] = *next;
    }
    for (; used > cells; used--)
        shrink(all, used);
    for (uint8_t i = 0; i < used; i++)
        into[i] = all[i];
    return true;
}

const struct aggregate aggregate_quantiles = {0, begin, merge_summaries};
