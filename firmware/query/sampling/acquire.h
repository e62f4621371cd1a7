/* Acquisition: the sensors are read once for all queries that are due together. */
#ifndef SKERRY_QUERY_SAMPLING_ACQUIRE_H
#define SKERRY_QUERY_SAMPLING_ACQUIRE_H

#include <stdint.h>

void acquire_init(void);
/* Acquires for all entries in EPOCH_WAITING; those wait on while an acquisition is under way. */
void acquire_start(void);

#endif
