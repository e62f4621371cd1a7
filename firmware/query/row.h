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
/* Evaluates the columns of the slot's query, for an epoch whose conditions are true, from what has been acquired, and queues the row
 * if windows are due; rows of a storage point, or for one, are kept there. True: a row was produced. */
bool row_produce(const struct slot *slot);

#endif
