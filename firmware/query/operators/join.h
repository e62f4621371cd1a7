/* Joins: an epoch's sensor tuple meets the rows of one or two storage points, a few at a time, so
 * that the radio keeps its slots and the queue its room. Nested loops, sensors outside. TinyDB
 * 2005, 3.2. */
#ifndef SKERRY_QUERY_OPERATORS_JOIN_H
#define SKERRY_QUERY_OPERATORS_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/query_table.h"

/* Whether a query joins rows of storage points. */
bool joins_rows(const struct query_entry *entry);
/* An epoch begins: the rows that are stored by now are those it will meet. */
void join_begin(struct query_entry *entry);
/* All that the entry's query reads of the mote has been acquired: goes on in the background until
 * the entry leaves EPOCH_JOINING. */
void join_start(struct query_entry *entry);

#endif
