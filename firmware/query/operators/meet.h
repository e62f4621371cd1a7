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
/* An epoch of the entry's query begins here: what waits from earlier ones is joined in the
 * background, and where two rows match, what the query's OUTPUT clauses say is done here
 * (events_row). */
void meet_epoch(struct query_entry *entry);
enum meet_step {
    MEET_OVER, /* all that can be joined is */
    MEET_MORE, /* a part is done, and there is more */
    MEET_WAITS /* the queue is to have room first */
};
/* Joins a part of what waits. */
enum meet_step meet_go_on(struct query_entry *entry);
/* Whether joining has begun, and is not over. */
bool meet_is_under_way(struct query_entry *entry);
/* Whether the entry's query joins rows of motes with each other. */
bool meet_joins(struct query_entry *entry);

/* ---- implemented by join.c, which joins in the background ---- */
/* There is something to be gone on with. */
void meet_due(void);

#endif
