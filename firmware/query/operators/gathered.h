/* What both sides of a question among motes know of it (gather.h). */
#ifndef SKERRY_QUERY_OPERATORS_GATHERED_H
#define SKERRY_QUERY_OPERATORS_GATHERED_H

#include <stdbool.h>
#include <stdint.h>

#include "query/operators/gather_cell.h"
#include "query/operators/index_program.h"

/* A question as its query's program says it. */
struct gather_question {
    const struct wire_gather *gather;
    const struct wire_gathered_kind *kinds; /* one for each aggregate */
    const uint8_t *bounds;                  /* INDEX_BOUNDS_BYTES for each column of the part … */
    struct program_code where;    /* … and behind them a condition; length 0: there is none */
    const struct query_entry *of; /* the index's */
    struct indexed index;
    struct indexed_part part;
};

/* What the entry's query asks; false: nothing, or it asks of no index that is known, or is
 * malformed. */
bool gather_read(const struct query_entry *entry, struct gather_question *question);

#endif
