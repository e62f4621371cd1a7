/* How the columns of a query's rows lie in a RESULT record, and in a stored row. */
#ifndef SKERRY_QUERY_PROGRAM_ROW_LAYOUT_H
#define SKERRY_QUERY_PROGRAM_ROW_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/query_table.h"

/* Bytes of a value in a format of enum wire_format; 0: unknown format. */
uint8_t row_format_size(uint8_t format);
/* The value whose bytes in a format begin here. */
int32_t row_unpack(const uint8_t *bytes, uint8_t format);
/* A column of a query's rows. */
struct row_column {
    const struct query_entry *entry;
    struct program_field field;
    uint8_t offset, size; /* in a row's values */
    uint16_t bit;         /* in its nulls */
};
/* Before the first column; of no entry there is none. */
void row_start(struct row_column *column, const struct query_entry *entry);
/* The next column; false: past the last, at the values' end. */
bool row_next_column(struct row_column *column);

#endif
