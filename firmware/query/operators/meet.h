/* Joins of motes' rows with each other, at motes that are above both of a pair (Mihaylov et al.
 * 2010). A program's PAIRS says which mote joins which pairs: their rows go up as all rows do, and
 * end where nobody further up needs them. */
#ifndef SKERRY_QUERY_OPERATORS_MEET_H
#define SKERRY_QUERY_OPERATORS_MEET_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/query_table.h"

/* A row of this mote, `length` bytes with its values: whether it goes up. Of a query that joins
 * nothing each does. One of a join is numbered. */
bool meet_own_passes(struct wire_result *row, uint8_t length);
/* An epoch of the entry's query begins here: what waits from earlier ones is joined, and where two
 * rows match, what the query's OUTPUT clauses say is done here (events_row). */
void meet_epoch(struct query_entry *entry);
/* Whether the entry's query joins rows of motes with each other. */
bool meet_joins(struct query_entry *entry);

#endif
