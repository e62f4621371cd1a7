/* Aggregates computed inside the network from partial state records.
 *
 * An aggregate is a `struct aggregate` in a file of its own (aggregate_*.c) and a line in
 * AGGREGATES. Its state is a row of cells of the record; all of them zero is the state over no
 * reading. The gateway computes its value (skerry.expressions.aggregate_states). */
#ifndef SKERRY_QUERY_OPERATORS_AGGREGATE_H
#define SKERRY_QUERY_OPERATORS_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board.h"
#include "query/program/query_table.h"
#include "wire.h"

struct aggregate {
    /* Cells of the state; 0: as many as the field's `format` says. */
    uint8_t cells;
    /* The state over one reading of mote `node`, into cells that are zero. */
    void (*initialise)(struct wire_aggregate_state *state, uint8_t cells, int32_t reading,
                       uint16_t node);
    /* Merges another state into one, whatever the order; false: the result needs more bits than
     * there are, the states are not merged, and *into means nothing. What is merged from is a copy,
     * which a merge may work in. Of an aggregate that is EXEMPLARY and MONOTONIC (AGGREGATE below)
     * motes do not send a state that leaves the values of another one as they are, and its counts
     * or makes these larger: larger counts may not matter, apart from being 0 or not. */
    bool (*merge)(struct wire_aggregate_state *into, const struct wire_aggregate_state *from,
                  uint8_t cells);
};

/* Declares an aggregate from outside this tree, a C file in the folder that make firmware
 * EXTENSIONS= and the gateway's --extensions name: number 16..31, cells of its state, decimal
 * places of its value beyond those of its argument, and what it is (EXEMPLARY or SUMMARY, |
 * MONOTONIC; TinyDB 2005, table I). The file defines aggregate_<name>, a
 * `const IN_FLASH struct aggregate`, and, for the gateway, its value in units of the last decimal
 * place; false: NULL. */
#define AGGREGATE(name, number, cells, digits, properties)                                         \
    extern const IN_FLASH struct aggregate aggregate_##name;                                       \
    bool aggregate_##name##_evaluate(const struct wire_aggregate_state *state, uint8_t count,      \
                                     int64_t *value);

/* Those of this tree: the end of a name of enum wire_aggregate, and the one that it is. AVG is a
 * sum that the gateway divides by the count. */
#define AGGREGATES(AGGREGATE_IS)                                                                   \
    AGGREGATE_IS(COUNT, count)                                                                     \
    AGGREGATE_IS(SUM, sum)                                                                         \
    AGGREGATE_IS(MIN, minimum)                                                                     \
    AGGREGATE_IS(MAX, maximum)                                                                     \
    AGGREGATE_IS(GROUP, group)                                                                     \
    AGGREGATE_IS(VARIANCE, variance)                                                               \
    AGGREGATE_IS(TOP, top)                                                                         \
    AGGREGATE_IS(BOTTOM, bottom)                                                                   \
    AGGREGATE_IS(HISTOGRAM, histogram)                                                             \
    AGGREGATE_IS(QUANTILES, quantiles)                                                             \
    AGGREGATE_IS(DISTINCT, distinct)                                                               \
    AGGREGATE_IS(REPRESENTATIVE, representative)

#define AGGREGATE_DECLARED(kind, name) extern const IN_FLASH struct aggregate aggregate_##name;
AGGREGATES(AGGREGATE_DECLARED)

/* Those from outside this tree, in the generated registry.c; NULL: unknown. */
const IN_FLASH struct aggregate *aggregate_outside(uint8_t aggregate);
/* Of enum wire_aggregate; NULL: none or unknown. */
const IN_FLASH struct aggregate *aggregate_find(uint8_t aggregate);
/* Cells of a field's state; 0: it is no aggregate, or has an impossible number of them. */
uint8_t aggregate_cells(const struct program_field *field);
/* Whether two states are of the same epoch of the same query, with which they begin. */
bool aggregate_same_epoch(const struct wire_partial *a, const struct wire_partial *b);
/* For states of one cell that are the reading: its `initialise`. */
void aggregate_begin(struct wire_aggregate_state *state, uint8_t cells, int32_t reading,
                     uint16_t node);
/* A sum of counts, which stay at their largest value rather than wrap. */
uint16_t aggregate_counts(uint16_t a, uint16_t b);
/* For states of one cell whose count is that of their readings: adds the counts. True: only one of
 * the states has readings, and *into is it now. */
bool aggregate_one_sided(struct wire_aggregate_state *into,
                         const struct wire_aggregate_state *from);
/* Merges sums of one cell, those over no reading too; false: beyond 32 bits. */
bool aggregate_add(struct wire_aggregate_state *into, const struct wire_aggregate_state *from);
/* Queues the partial state record of this mote's own readings for the context's epoch, in whose
 * `motes` it `counts` or not. A row that does not pass its conditions counts in `motes` only; where
 * rows are grouped that is the record of no group. */
void aggregate_produce(const struct eval_context *context, bool passes, bool counts);

#endif
