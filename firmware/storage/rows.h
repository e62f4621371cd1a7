/* What the log asks of the rows of storage points, which drivers/rowstore.h writes and reads. */
#ifndef SKERRY_STORAGE_ROWS_H
#define SKERRY_STORAGE_ROWS_H

#include <stdbool.h>

#include "storage/log.h"

/* After a restart: no row is anywhere until it is found; then, in the order of writing, each. */
void rows_forget_places(void);
void rows_found(const struct log_record *record);
void rows_lost(const struct log_record *record);
/* Whether a record is what was last written to its place. */
bool rows_keeps(const struct log_record *record);

#endif
