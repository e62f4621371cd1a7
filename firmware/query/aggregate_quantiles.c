/* MEDIAN and QUANTILE: a summary of the readings' distribution that carries its own error.
 *
 * A cell says that `count` readings lie in an interval: its low end (16 bits, signed) in the low
 * half of `value`, its width in the high half. Merging keeps all intervals while there are cells
 * for them, so that few readings are summarised exactly; then the two neighbours whose union is the
 * least harm (readings times width) become one. Whatever was merged where, the k-th smallest
 * reading lies between the k-th smallest low end and the k-th smallest high end. */
#include "query/aggregate.h"

#include <string.h>

/* A cell as it is on the wire, little-endian. */
struct interval {
    uint16_t count;
    int16_t low;
    uint16_t width;
} __attribute__((packed));
_Static_assert(sizeof(struct wire_aggregate_state) == sizeof(struct interval),
               "an interval is a cell");

static void begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading, uint16_t node)
{
    (void)cells, (void)node;
    struct interval *only = (struct interval *)state;
    only->count = 1;
    /* The planner scales readings to 16 bits. */
    only->low = reading < INT16_MIN   ? INT16_MIN
                : reading > INT16_MAX ? INT16_MAX
                                      : (int16_t)reading;
}

/* Makes of an interval its union with the next, which begins behind it; both lie within 16 bits. */
static void join(struct interval *interval, const struct interval *next)
{
    uint16_t end = (uint16_t)((uint16_t)(next->low - interval->low) + next->width);
    interval->count = aggregate_counts(interval->count, next->count);
    if (end > interval->width)
        interval->width = end;
}

/* Joins the two neighbours whose union is the least harm; the first of several. */
static void shrink(struct interval *intervals, uint8_t used)
{
    struct interval *best = intervals, *last = &intervals[used - 1];
    uint32_t least = UINT32_MAX;
    for (struct interval *at = intervals; at < last; at++) {
        struct interval both = *at;
        join(&both, at + 1);
        uint32_t harm = (uint32_t)both.count * both.width;
        if (harm < least) {
            least = harm;
            best = at;
        }
    }
    join(best, best + 1);
    memmove(best + 1, best + 2, (size_t)((uint8_t *)last - (uint8_t *)(best + 1)));
}

static bool before(const struct interval *a, const struct interval *b)
{
    return a->low != b->low ? a->low < b->low : a->width < b->width;
}

static const struct interval *end_of(const struct interval *intervals, uint8_t most)
{
    for (; most > 0 && intervals->count != 0; most--)
        intervals++;
    return intervals;
}

static bool merge_summaries(struct wire_aggregate_state *into,
                            const struct wire_aggregate_state *from, uint8_t cells)
{
    struct interval all[2 * WIRE_FIELDS_MAXIMUM];
    const struct interval *a = (const struct interval *)into, *b = (const struct interval *)from;
    const struct interval *a_end = end_of(a, cells), *b_end = end_of(b, cells);
    uint8_t used = 0;
    while (a < a_end || b < b_end) {
        bool first = b == b_end || (a < a_end && !before(b, a));
        const struct interval *next = first ? a++ : b++;
        /* Equal ones are one: nothing is lost by that. */
        if (used > 0 && all[used - 1].low == next->low && all[used - 1].width == next->width)
            all[used - 1].count = aggregate_counts(all[used - 1].count, next->count);
        else
            all[used++] = *next;
    }
    for (; used > cells; used--)
        shrink(all, used);
    memcpy(into, all, used * sizeof *all);
    return true;
}

const struct aggregate aggregate_quantiles = {0, begin, merge_summaries};
