/* Tuples that another mote gives to this one, as it stores their zone now: the other side of
 * index_giving.h. */
#ifndef SKERRY_QUERY_OPERATORS_INDEX_TAKING_H
#define SKERRY_QUERY_OPERATORS_INDEX_TAKING_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/tuples.h"

/* A round begins: what has come is acknowledged. */
void index_taking_due(void);
/* Whether states of this mote count a tuple of an index in what is asked in network second `asked`:
 * those of the mote that has given it do before. */
bool index_taking_counts(uint16_t index, const struct tuple *tuple, uint32_t asked);

#endif
