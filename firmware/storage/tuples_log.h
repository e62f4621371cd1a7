/* What the log asks of tuples. */
#ifndef SKERRY_STORAGE_TUPLES_LOG_H
#define SKERRY_STORAGE_TUPLES_LOG_H

#include <stdbool.h>

#include "storage/log.h"

/* Whether a record is a tuple, and the hash of its index and name. */
bool tuples_is(const struct log_record *record);
uint32_t tuples_hash(const struct log_record *record);
/* After a restart: there is no index until its tuples are found; then, in the order of writing,
 * each tuple and each index that was dropped. */
void tuples_forget(void);
void tuples_found(const struct log_record *record);
/* A record's page is evicted; false: it was no tuple, or of an index that was dropped. */
bool tuples_evict(const struct log_record *record);

#endif
