/* MEDIAN and QUANTILE: a summary of the readings' distribution that carries its own error.
 *
 * A cell says that `count` readings lie in an interval: its low end (16 bits, signed) in the low
 * half of `value`, its width in the high half. Merging keeps all intervals while there are cells
 * for them, so that few readings are summarised exactly; then the two neighbours whose union is the
 * least harm (readings times width) become one. Whatever was merged where, the k-th smallest
 * reading lies between the k-th smallest low end and the k-th smallest high end. */
#include "query/operators/aggregate.h"

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

/* What is merged, in order: intervals of the result, then of the other state, whose copy is of no
 * use afterwards. An array of both would be 144 bytes of stack beneath all that merges. */
struct merged {
    struct interval *own, *other;
    uint8_t of_own, used; /* of `own`; of both */
};

static struct interval *at(const struct merged *all, uint8_t i)
{
    return i < all->of_own ? &all->own[i] : &all->other[i - all->of_own];
}

static void take_out(struct merged *all, uint8_t i)
{
    all->used--;
    for (; i < all->used; i++)
        *at(all, i) = *at(all, (uint8_t)(i + 1));
}

/* Joins the two neighbours whose union is the least harm; the first of several. */
static void shrink(struct merged *all)
{
    uint8_t best = 0;
    uint32_t least = UINT32_MAX;
    for (uint8_t i = 0; i + 1 < all->used; i++) {
        struct interval both = *at(all, i);
        join(&both, at(all, (uint8_t)(i + 1)));
        uint32_t harm = (uint32_t)both.count * both.width;
        if (harm < least) {
            least = harm;
            best = i;
        }
    }
    join(at(all, best), at(all, (uint8_t)(best + 1)));
    take_out(all, (uint8_t)(best + 1));
}

static bool before(const struct interval *a, const struct interval *b)
{
    return a->low != b->low ? a->low < b->low : a->width < b->width;
}

static uint8_t count_of(const struct interval *intervals, uint8_t most)
{
    uint8_t count = 0;
    while (count < most && intervals[count].count != 0)
        count++;
    return count;
}

/* Each state is in order. */
static void sort(const struct merged *all)
{
    for (uint8_t i = all->of_own; i < all->used; i++)
        for (uint8_t j = i; j > 0; j--) {
            struct interval *here = at(all, j), *there = at(all, (uint8_t)(j - 1)), moved = *here;
            if (!before(here, there))
                break;
            *here = *there;
            *there = moved;
        }
}

/* Equal ones are one: nothing is lost by that. */
static void unite_equal(struct merged *all)
{
    for (uint8_t i = 1; i < all->used;) {
        struct interval *here = at(all, i), *there = at(all, (uint8_t)(i - 1));
        if (here->low != there->low || here->width != there->width) {
            i++;
            continue;
        }
        there->count = aggregate_counts(there->count, here->count);
        take_out(all, i);
    }
}

static bool merge_summaries(struct wire_aggregate_state *into,
                            const struct wire_aggregate_state *from, uint8_t cells)
{
    struct merged all = {.own = (struct interval *)into, .other = (struct interval *)from};
    all.of_own = count_of(all.own, cells);
    all.used = (uint8_t)(all.of_own + count_of(all.other, cells));
    sort(&all);
    unite_equal(&all);
    while (all.used > cells)
        shrink(&all);
    for (uint8_t i = all.of_own; i < all.used; i++)
        all.own[i] = *at(&all, i);
    return true;
}

const IN_FLASH struct aggregate aggregate_quantiles = {0, begin, merge_summaries};
