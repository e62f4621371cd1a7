/* MEDIAN and QUANTILE: a summary of the readings' distribution that carries its own error.
 *
 * A cell says that `count` readings lie in an interval: its low end (16 bits, signed) in the low half of `value`, its width in the
 * high half. Merging keeps all intervals while there are cells for them, so that few readings are summarised exactly; then the two
 * neighbours whose union is the least harm (readings times width) become one. Whatever was merged where, the k-th smallest reading
 * lies between the k-th smallest low end and the k-th smallest high end. */
#include "query/aggregate.h"

#include <string.h>

static int16_t low_of(const struct wire_aggregate_state *cell) { return (int16_t)(uint16_t)(uint32_t)cell->value; }
static uint16_t width_of(const struct wire_aggregate_state *cell) { return (uint16_t)((uint32_t)cell->value >> 16); }

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

/* Makes of a cell its union with the next, which begins behind it; both lie within 16 bits. */
static void join(struct wire_aggregate_state *cell, const struct wire_aggregate_state *next)
{
    uint16_t width = width_of(cell), end = (uint16_t)((uint16_t)(low_of(next) - low_of(cell)) + width_of(next));
    keep(cell, aggregate_counts(cell->count, next->count), low_of(cell), end > width ? end : width);
}

/* Joins the two neighbours whose union is the least harm; the first of several. */
static void shrink(struct wire_aggregate_state *cells, uint8_t used)
{
    struct wire_aggregate_state *best = cells, *last = &cells[used - 1];
    uint32_t least = UINT32_MAX;
    for (struct wire_aggregate_state *cell = cells; cell < last; cell++) {
        struct wire_aggregate_state both = *cell;
        join(&both, cell + 1);
        uint32_t harm = (uint32_t)both.count * width_of(&both);
        if (harm < least) {
            least = harm;
            best = cell;
        }
    }
    join(best, best + 1);
    memmove(best + 1, best + 2, (size_t)((uint8_t *)last - (uint8_t *)(best + 1)));
}

static bool before(const struct wire_aggregate_state *a, const struct wire_aggregate_state *b)
{
    return low_of(a) != low_of(b) ? low_of(a) < low_of(b) : width_of(a) < width_of(b);
}

static uint8_t used_of(const struct wire_aggregate_state *cells, uint8_t most)
{
    uint8_t used = 0;
    while (used < most && cells[used].count != 0)
        used++;
    return used;
}

static bool merge_summaries(struct wire_aggregate_state *into, const struct wire_aggregate_state *from, uint8_t cells)
{
    struct wire_aggregate_state all[2 * WIRE_FIELDS_MAXIMUM];
    const struct wire_aggregate_state *a = into, *a_end = a + used_of(into, cells), *b = from, *b_end = b + used_of(from, cells);
    uint8_t used = 0;
    while (a < a_end || b < b_end) {
        bool first = b == b_end || (a < a_end && !before(b, a));
        const struct wire_aggregate_state *next = first ? a++ : b++;
        /* Equal ones are one: nothing is lost by that. */
        if (used > 0 && all[used - 1].value == next->value)
            all[used - 1].count = aggregate_counts(all[used - 1].count, next->count);
        else
            all[used++] = *next;
    }
    for (; used > cells; used--)
        shrink(all, used);
    memcpy(into, all, used * sizeof *into);
    return true;
}

const struct aggregate aggregate_quantiles = {0, begin, merge_summaries};
