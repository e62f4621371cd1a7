/* What is asked of a part of an index: which motes may store it, and which tuples it is. */
#ifndef SKERRY_QUERY_OPERATORS_INDEX_ZONE_H
#define SKERRY_QUERY_OPERATORS_INDEX_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "index/box.h"
#include "index/zone.h"
#include "query/operators/index_program.h"
#include "storage/tuples.h"

/* Bytes that tell the least and the greatest point of a column: the highest 12 bits of each. */
#define INDEX_BOUNDS_BYTES 3U

/* Points from INDEX_BOUNDS_BYTES for each of so many columns. */
void index_read_bounds(const uint8_t *bounds, uint8_t columns, struct index_box *box);
/* Whether this mote may store what is asked of the part. Its zone ends where another settled mote's
 * begins: what is lent, or was, is its own. One that was added may have anything, of an earlier
 * place. */
bool index_may_store(const struct indexed_part *part, const struct index_box *box);
/* Whether a tuple of the part is in the box. */
bool index_in_box(const struct indexed *index, const struct indexed_part *part,
                  const struct tuple *tuple, const struct index_box *box);
/* The code of a tuple of the part. */
uint32_t index_tuple_code(const struct indexed *index, const struct indexed_part *part,
                          const struct tuple *tuple);
/* What this mote owns of the part now; false: nothing. */
bool index_owned(const struct indexed_part *part, struct zone_owned *owned);

#endif
