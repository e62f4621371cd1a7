#include "query/operators/row.h"

#include <string.h>

#include "drivers/settings.h"
#include "lib/calls.h"
#include "net/transport/queue.h"
#include "query/events/events.h"
#include "query/expressions/attribute.h"
#include "query/expressions/vm.h"
#include "query/operators/indexed.h"
#include "query/operators/meet.h"
#include "query/operators/pulse.h"
#include "query/operators/storage.h"
#include "query/operators/temporal.h"
#include "query/queueing/queue_discipline.h"

struct row {
    struct wire_result result;
    uint8_t values[WIRE_FIELDS_MAXIMUM * sizeof(int32_t) + sizeof(struct wire_tally)];
} __attribute__((packed));

static bool fits(int32_t value, uint8_t format)
{
    return row_unpack((const uint8_t *)&value, format) == value;
}

static const IN_FLASH struct vm_readers row_readers = {.attribute = attribute_read,
                                                       .changes = row_changes};

struct eval_context row_context(struct query_entry *entry)
{
    return (struct eval_context){&row_readers, entry, entry->epoch, events_event(entry)};
}

/* Gives its windows the readings of the epoch, if it passes. What is due is a row where nothing has
 * passed in any window, or it has none. */
static enum row_outcome take_readings(const struct eval_context *context, bool passes)
{
    const struct query_entry *entry = context->query;
    struct program_field field;
    uint8_t *windows = entry_windows(entry);
    bool due = true, counts = false, empty = true, pulses = false, ended = false;
    for (program_start(&field); entry_next_column(entry, &field);
         windows += temporal_size(&field)) {
        if (!(passes ? temporal_is(field.aggregate) : temporal_counts_epochs(&field)))
            continue;
        struct program_code code = temporal_code(&field);
        int32_t reading;
        if (!passes || !program_compute(&code, context, &reading))
            reading = TEMPORAL_NOTHING;
        if (pulse_is(field.aggregate)) {
            pulses = true;
            ended |= pulse_take(&field, windows, context->epoch,
                                reading != 0 && reading != TEMPORAL_NOTHING);
            continue;
        }
        due = temporal_take(&field, windows, context->epoch, passes, reading) && due;
        if (temporal_counts_epochs(&field)) {
            counts = true;
            empty &= temporal_empty(&field, windows);
        }
    }
    if (!due || (pulses && !ended))
        return ROW_WAITS;
    return counts && empty ? ROW_EMPTY : ROW_MADE;
}

bool row_counts_epochs(const struct query_entry *entry)
{
    struct program_field field;
    for (program_start(&field); entry_next_column(entry, &field);)
        if (temporal_counts_epochs(&field))
            return true;
    return false;
}

bool row_changes(uint8_t column, int32_t *value, const struct eval_context *context)
{
    const struct query_entry *entry = context->query;
    struct program_field field;
    const uint8_t *windows = entry_windows(entry);
    for (program_start(&field); entry_next_column(entry, &field);
         windows += temporal_size(&field)) {
        if (column-- > 0)
            continue;
        if (!temporal_is(field.aggregate))
            return false;
        *value = temporal_changes(&field, windows, context->epoch, *value);
        return true;
    }
    return false;
}

static bool field_value(const struct eval_context *context, const struct program_field *field,
                        uint8_t *window, int32_t *value)
{
    if (pulse_is(field->aggregate))
        return pulse_value(field, window, value);
    if (field->aggregate != WIRE_AGGREGATE_NONE)
        return temporal_value(field, window, value);
    return program_compute(&field->code, context, value);
}

/* Keeps the row where it belongs to a storage point. */
static NOT_INLINED bool keep_row(const struct query_entry *entry, const struct row *row,
                                 uint8_t used)
{
    const struct query_entry *point;
    struct stored_row stored;
    uint32_t seconds, milliseconds;
    if (!storage_takes(entry, &point))
        return false;
    entry_epoch_start(entry, entry->epoch, &seconds, &milliseconds);
    stored.seconds = seconds;
    stored.milliseconds = (uint16_t)milliseconds;
    stored.nulls = row->result.nulls;
    /* all `used` bytes are written
     * NOLINTNEXTLINE(clang-analyzer-unix.cstring.UninitializedRead) */
    memcpy(stored.values, row->values, used);
    if (point == NULL || !storage_append(point, &stored))
        queue_lost();
    return true;
}

enum row_outcome row_produce(const struct eval_context *context, bool passes)
{
    const struct query_entry *entry = context->query;
    struct row row;
    struct row_column column;
    enum row_outcome outcome = take_readings(context, passes);
    if (outcome != ROW_MADE)
        return outcome;
    uint8_t *windows = entry_windows(entry);
    row.result.query = entry->query;
    row.result.node = settings()->nodeid;
    row.result.epoch = context->epoch;
    row.result.nulls = 0;
    for (row_start(&column, entry); row_next_column(&column);
         windows += temporal_size(&column.field)) {
        int32_t value;
        if (!field_value(context, &column.field, windows, &value) ||
            !fits(value, column.field.format)) {
            row.result.nulls |= column.bit;
            value = 0;
        }
        /* little-endian, as wire.h makes sure */
        memcpy(&row.values[column.offset], &value, column.size);
    }
    uint8_t used = column.offset;
    if (indexed_row(entry, &row.result, used) || keep_row(entry, &row, used))
        return ROW_MADE;
    if (entry_fast(entry) && row.result.nulls == 0) {
        /* A series begins as a result does, without `nulls`. */
        uint8_t *series = (uint8_t *)&row + sizeof row.result.nulls;
        memmove(series, &row, sizeof(struct wire_series));
        queue_push(WIRE_PACKET_SERIES, series, (uint8_t)(sizeof(struct wire_series) + used));
    } else if (meet_own_passes(&row.result, (uint8_t)(sizeof row.result + used)))
        discipline_row(&row.result, (uint8_t)(sizeof row.result + used));
    return ROW_MADE;
}
