/* Indexes: programs whose rows go to the motes that store them for others. Which mote stores a row
 * follows from its values (DIM 2004, 3.1); all motes know those that store, and where these stand.
 * Parts of a row may be stored apart, each with the row's name (4.1). */
#ifndef SKERRY_QUERY_OPERATORS_INDEXED_H
#define SKERRY_QUERY_OPERATORS_INDEXED_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/query_table.h"
#include "wire.h"

/* Whether any row waits here for who stores it. */
bool indexed_waits(void);
/* Takes a row of an entry with an index, `width` bytes of values; false: it has none. It waits for
 * the next control window. */
bool indexed_row(const struct query_entry *entry, const struct wire_result *row, uint8_t width);

#endif
