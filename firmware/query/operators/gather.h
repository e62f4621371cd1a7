/* Questions that are asked of an index and answered among motes (AT MOTE): in each epoch whoever
 * stores what is asked for looks through it, and sends the aggregates' states to the mote that
 * gathers them. That one's rows are the aggregates' values, of which its query's conditions and
 * actions are. All know the query, so that nobody has to be asked. */
#ifndef SKERRY_QUERY_OPERATORS_GATHER_H
#define SKERRY_QUERY_OPERATORS_GATHER_H

#include <stdbool.h>

#include "query/program/query_table.h"

/* Whether an entry's query is such a question. */
bool gathers(const struct query_entry *entry);
/* Its epoch has begun, or all have answered in it, and what this mote senses itself for it is
 * fresh.
 */
void gather_start(struct query_entry *entry);

#endif
