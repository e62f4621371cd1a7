/* What motes of a subtree have of a static attribute, in eight bytes: whether one of them may have
 * what is asked for. A summary never denies what was added to it or to one that was merged into it.
 *
 * An interval suits values that lie together in the tree, a box positions, a Bloom filter what is
 * asked for by its value, a histogram ranges of values that do not lie together; it counts, too. */
#ifndef SKERRY_JOIN_SUMMARY_H
#define SKERRY_JOIN_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#define SUMMARY_BYTES 8

enum summary_kind { SUMMARY_INTERVAL = 1, SUMMARY_BOX, SUMMARY_BLOOM, SUMMARY_HISTOGRAM };

/* The same on all motes. */
struct summary_shape {
    int16_t low;   /* of a histogram: where its first bin begins */
    uint8_t width; /* of a histogram: each bin has 2 to this power values, up to 12 */
    uint8_t kind;
};

struct summary {
    uint8_t bytes[SUMMARY_BYTES];
};

/* A value; y is a position's. */
struct summary_value {
    int16_t x, y;
};

/* Values from low to high, both included. */
struct summary_ask {
    struct summary_value low, high;
};

/* What came from outside: whether it can be. */
bool summary_shape_check(const struct summary_shape *shape);
bool summary_ask_check(const struct summary_shape *shape, const struct summary_ask *ask);

/* Nothing is in it. */
void summary_clear(const struct summary_shape *shape, struct summary *summary);
/* Anything may be in it. */
void summary_fill(const struct summary_shape *shape, struct summary *summary);
void summary_add(const struct summary_shape *shape, struct summary *summary,
                 const struct summary_value *value);
void summary_merge(const struct summary_shape *shape, struct summary *summary,
                   const struct summary *other);
/* Whether something in it may be asked for. */
bool summary_may(const struct summary_shape *shape, const struct summary *summary,
                 const struct summary_ask *ask);
/* Whether a value is. */
bool summary_asked(const struct summary_shape *shape, const struct summary_value *value,
                   const struct summary_ask *ask);
/* Motes in the bins that are asked for, at least where one holds 15; of other kinds 0. */
uint8_t summary_count(const struct summary_shape *shape, const struct summary *summary,
                      const struct summary_ask *ask);

#endif
