/* Rows: a query's fields packed into a RESULT record. */
#ifndef SKERRY_QUERY_ROW_H
#define SKERRY_QUERY_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "query/slots.h"

/* Bytes of a value in a format of enum wire_format; 0: unknown format. */
uint8_t row_format_size(uint8_t format);
/* The value whose bytes in a format begin here. */
int32_t row_unpack(const uint8_t *bytes, uint8_t format);
/* A column of a query's rows. */
struct row_column {
    const struct slot *slot;
    struct program_field field;
    uint8_t offset, size; /* in a row's values */
    uint16_t bit;         /* in its nulls */
};
/* Before the first column; of no slot there is none. */
void row_start(struct row_column *column, const struct slot *slot);
/* The next column; false: past the last, at the values' end. */
bool row_next_column(struct row_column *column);
/* Whether epochs count that do not pass: the query has a window of epochs. */
bool row_counts_epochs(const struct slot *slot);
enum row_outcome {
    ROW_MADE,
    ROW_WAITS, /* its windows are not due */
    ROW_EMPTY, /* they are due, and no epoch in them passed */
};

/* To evaluate code of the slot's query for its present epoch: of what has been acquired, its
 * windows and the event that lets it run. */
struct eval_context row_context(struct slot *slot);

/* Evaluates the columns of the context's query, and queues the row if
 * windows are due; rows of a storage point, or for one, are kept there. `passes`: the epoch's
 * conditions are true; else its readings are in no window. */
enum row_outcome row_produce(const struct eval_context *context, bool passes);
/* A vm_reader of CHANGES; false: the column is no window. */
bool row_changes(uint8_t column, int32_t *value, const struct eval_context *context);

#endif
