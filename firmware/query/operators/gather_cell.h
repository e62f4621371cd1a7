/* States of aggregates over an index's tuples. */
#ifndef SKERRY_QUERY_OPERATORS_GATHER_CELL_H
#define SKERRY_QUERY_OPERATORS_GATHER_CELL_H

#include <stdint.h>

/* The state of an aggregate. */
struct gather_cell {
    int64_t value; /* a sum, or the least or the greatest */
    uint32_t count;
} __attribute__((packed));

/* Adds one value to a state of enum wire_aggregate, or what has been found elsewhere. */
void gather_add(struct gather_cell *cell, uint8_t aggregate, int64_t value, uint32_t count);

#endif
