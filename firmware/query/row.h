/* Rows: a query's fields packed into a RESULT record. */
#ifndef SKERRY_QUERY_ROW_H
#define SKERRY_QUERY_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "query/slots.h"

/* Bytes of a value in a format of enum wire_format; 0: unknown format. */
uint8_t row_format_size(uint8_t format);
/* Evaluates the slot's query for its epoch from the last acquisition and queues the row where WHERE is true.
 * True: a record was produced. */
bool row_produce(const struct slot *slot);
/* Whether WHERE is true for the slot's epoch; true without one. */
bool row_passes(const struct slot *slot);

#endif
