/* Whose the log's records are. */
#include "storage/log.h"
#include "storage/rows.h"
#include "storage/tidy.h"
#include "storage/tuples_log.h"

void log_restarted(void)
{
    rows_forget_places();
    tuples_forget();
}

void log_found(const struct log_record *record)
{
    if (record->kind == LOG_ROW)
        rows_found(record);
    else
        tuples_found(record);
}

enum log_fate log_fate_of(const struct log_record *record)
{
    if (record->kind == LOG_ROW)
        return rows_keeps(record) ? LOG_KEPT : LOG_GONE;
    return tuples_evict(record) ? LOG_EVICTED : LOG_GONE;
}

void log_copied(const struct log_record *record) { log_found(record); }
bool log_has_name(const struct log_record *record) { return tuples_is(record); }
uint32_t log_name_of(const struct log_record *record) { return tuples_hash(record); }

void log_grew_untidy(void) { tidy_later(); }
void log_lost(const struct log_record *record) { rows_lost(record); }
