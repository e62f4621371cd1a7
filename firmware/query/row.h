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

/* What code of a slot's query comes to with what has been acquired; false: NULL. */
bool row_compute(const struct slot *slot, const struct program_code *code, int32_t *value);
/* Whether the conditions of the slot's query are true of what has been acquired. */
bool row_passes(const struct slot *slot);

/* Evaluates the columns of the slot's query from what has been acquired, and queues the row if
 * windows are due; rows of a storage point, or for one, are kept there. `passes`: the epoch's
 * conditions are true; else its readings are in no window. */
enum row_outcome row_produce(const struct slot *slot, bool passes);
/* What a CHANGES opcode says of a reading in *value: whether it can change the window in a column.
 * False: there is no window. */
bool row_changes(const struct slot *slot, uint8_t column, int32_t *value);

#endif
