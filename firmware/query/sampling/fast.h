/* Queries with sample periods below a second: their epochs follow each other by adding ticks, and
 * are sampled at once, without the acquisition that slow sensors need. query/epochs plans them anew
 * each second of network time. */
#ifndef SKERRY_QUERY_SAMPLING_FAST_H
#define SKERRY_QUERY_SAMPLING_FAST_H

#include "net/mac/time.h"
#include "query/program/query_table.h"

/* Plans the epochs of a ENTRY_FAST from its `next`, which starts at `start`, to the end of that
 * second. False: none passes, and it is not sampled; conditions that read no sensor are asked once
 * a second. */
bool fast_plan(struct query_entry *entry, const struct net_time *start);
/* Sees to it that what was planned is sampled. */
void fast_start(void);

#endif
