/* Tuples of an index whose zone has changed hands go to who stores it now: in batches, each to one
 * mote, and forgotten here once that mote has said that it stores them. */
#ifndef SKERRY_QUERY_OPERATORS_INDEX_GIVING_H
#define SKERRY_QUERY_OPERATORS_INDEX_GIVING_H

#include <stdbool.h>
#include <stdint.h>

#include "query/operators/index_program.h"
#include "storage/tuples.h"

/* A round begins. `looked_for`: tuples of this mote are; it forgets none then. */
void index_giving_due(bool looked_for);
/* Whether states of this mote count a tuple that a scan has just met, in what is asked in network
 * second `asked`: from some second on those of the mote do that it was given to. */
bool index_giving_counts(const struct indexed *index, const struct indexed_part *part,
                         const struct tuple *tuple, const struct tuples_scan *scan, uint32_t asked);

#endif
