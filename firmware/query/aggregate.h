/* Aggregates computed inside the network from partial state records.
 *
 * An aggregate is a `struct aggregate` in a file of its own (aggregate_*.c) and a line in aggregate_find. */
#ifndef SKERRY_QUERY_AGGREGATE_H
#define SKERRY_QUERY_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "query/slots.h"
#include "wire.h"

struct aggregate {
    /* The state's value for one reading. */
    int32_t (*initialise)(int32_t reading);
    /* Merges the value of another state into *value, both of at least one reading, whatever the order;
     * false: the result needs more than 32 bits. */
    bool (*merge)(int32_t *value, int32_t other);
};

extern const struct aggregate aggregate_count; /* aggregate_sum.c */
extern const struct aggregate aggregate_sum;   /* and of AVG */
extern const struct aggregate aggregate_minimum; /* aggregate_extreme.c */
extern const struct aggregate aggregate_maximum;
extern const struct aggregate aggregate_group; /* aggregate_group.c */

/* Of enum wire_aggregate; NULL: none or unknown. */
const struct aggregate *aggregate_find(uint8_t aggregate);
/* Queues the partial state record of this mote's own readings for the slot's epoch: a row that WHERE
 * refuses counts in `motes` only, or not at all where rows are grouped. */
void aggregate_produce(const struct slot *slot);

#endif
