/* Rows: a query's fields packed into a RESULT record. */
#ifndef SKERRY_QUERY_OPERATORS_ROW_H
#define SKERRY_QUERY_OPERATORS_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/row_layout.h"

/* Whether epochs count that do not pass: the query has a window of epochs. */
bool row_counts_epochs(const struct query_entry *entry);
enum row_outcome {
    ROW_MADE,
    ROW_WAITS, /* its windows are not due */
    ROW_EMPTY, /* they are due, and no epoch in them passed */
};

/* To evaluate code of the entry's query for its present epoch: of what has been acquired, its
 * windows and the event that lets it run. */
struct eval_context row_context(struct query_entry *entry);

/* Evaluates the columns of the context's query, and queues the row if
 * windows are due; rows of a storage point, or for one, are kept there. `passes`: the epoch's
 * conditions are true; else its readings are in no window. */
enum row_outcome row_produce(const struct eval_context *context, bool passes);
/* A vm_reader of CHANGES; false: the column is no window. */
bool row_changes(uint8_t column, int32_t *value, const struct eval_context *context);

#endif
