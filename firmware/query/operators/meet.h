/* Joins of motes' rows with each other, at motes that are above both of a pair (Mihaylov et al.
 * 2010). A program's PAIRS says which mote joins which pairs: their rows go up as all rows do, and
 * end where nobody further up needs them. */
#ifndef SKERRY_QUERY_OPERATORS_MEET_H
#define SKERRY_QUERY_OPERATORS_MEET_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/query_table.h"

/* A row of this mote, or of one below it, `length` bytes with its values, some of which may be cut
 * off: whether it goes on up. Of a query that joins nothing each does. */
bool meet_passes(const struct wire_result *row, uint8_t length, bool own);
/* An epoch of the entry's query begins here: what waits from earlier ones is joined. */
void meet_epoch(struct query_entry *entry);

#endif
