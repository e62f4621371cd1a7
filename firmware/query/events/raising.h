/* What a mote raises and does: a row's OUTPUT clauses, and events of its own. Source: TinyDB 2005,
 * 3.5 and 3.7. */
#ifndef SKERRY_QUERY_EVENTS_RAISING_H
#define SKERRY_QUERY_EVENTS_RAISING_H

#include "query/program/query_table.h"

/* A row of the context's query is due: does what its OUTPUT clauses say. A signal is raised by the
 * first of several such rows in a row. */
void events_row(const struct eval_context *context);
/* A row of the entry's query did not pass. */
void events_no_row(struct query_entry *entry);
/* Queries or network time have become known, or floods have found room: what waits for them can be
 * raised. */
void events_changed(void);

#endif
