/* A ring would split records: this is a row of records in one array, removed by moving the rest up.
 * At 1.7 KB that costs a millisecond at most, a few times a round. */
#include "net/transport/queue.h"

#include <stddef.h>
#include <string.h>

#include "board.h"
#include "kernel/assert.h"
#include "net/app.h"
#include "net/transport/outbox.h"
#include "net/transport/transport_conf.h"
#include "net/transport/transport_ops.h"

#define RECORD_LONGEST                                                                             \
    (WIRE_PACKET_MAXIMUM - sizeof(struct wire_header) - sizeof(struct wire_bundle) -               \
     sizeof(struct wire_record))

static struct {
    uint8_t records[QUEUE_BYTES]; /* one behind the other, the oldest first */
    uint16_t used;                /* bytes of them */
    uint8_t count;                /* of those that are to be sent */
    uint16_t dropped;             /* records lost since boot, for want of room or with a session */
} queue;

static uint8_t *end(void) { return queue.records + queue.used; }
/* Bytes from there to the end. */
static size_t rest(const uint8_t *from) { return (size_t)((uintptr_t)end() - (uintptr_t)from); }

static uint8_t *behind(struct queue_record *record) { return record->body + record->length; }
static struct queue_record *at(uint8_t *place)
{
    INVARIANT(place <= end(), QUEUE);
    return place < end() ? (struct queue_record *)place : NULL;
}

uint8_t queue_length(void) { return queue.count; }
uint16_t queue_dropped(void) { return queue.dropped; }
uint16_t queue_room(void) { return (uint16_t)(QUEUE_BYTES - queue.used); }

void queue_lost(void)
{
    if (queue.dropped != UINT16_MAX)
        queue.dropped++;
}

static bool is_state(uint8_t type) { return type == WIRE_PACKET_PARTIAL || type == QUEUE_HEARD; }

/* Bytes of a record without the partial states at its end that are zero. */
static uint8_t trimmed(uint8_t type, const uint8_t *body, uint8_t length)
{
    if (!is_state(type) || length < sizeof(struct wire_partial))
        return length;
    while (length - sizeof(struct wire_partial) >= sizeof(struct wire_aggregate_state)) {
        for (uint8_t i = 0; i < (uint8_t)sizeof(struct wire_aggregate_state); i++)
            if (body[length - 1 - i] != 0)
                return length;
        length = (uint8_t)(length - sizeof(struct wire_aggregate_state));
    }
    return length;
}

/* Makes room for so many bytes at the end of a record's body; false: there is none. */
static bool grow(struct queue_record *record, uint8_t more)
{
    uint8_t *from = behind(record);
    if (more > queue_room())
        return false;
    memmove(from + more, from, rest(from));
    queue.used = (uint16_t)(queue.used + more);
    record->length = (uint8_t)(record->length + more);
    return true;
}

/* Merges into one record, which grows where it has to; no more than the other is long. */
static bool merge_into(struct queue_record *record, const struct wire_partial *from, uint8_t length)
{
    static union {
        struct wire_partial header;
        uint8_t bytes[sizeof(struct wire_partial) +
                      WIRE_FIELDS_MAXIMUM * sizeof(struct wire_aggregate_state)];
    } whole;
    uint8_t size = app_state_size(from->query);
    if (size < record->length || size > sizeof whole)
        return false;
    memset(&whole, 0, sizeof whole);
    memcpy(whole.bytes, record->body, record->length);
    if (!app_merge(&whole.header, size, from, length))
        return false;
    uint8_t after = trimmed(record->type, whole.bytes, size);
    if (after > record->length && !grow(record, (uint8_t)(after - record->length)))
        return false;
    memcpy(record->body, whole.bytes, record->length);
    return true;
}

static bool merge(uint8_t type, const struct wire_partial *from, uint8_t length)
{
    for (struct queue_record *record = queue_any(NULL); record; record = queue_any(record)) {
        const struct wire_partial *waiting = (const struct wire_partial *)record->body;
        if (record->type == type && !record->in_flight && waiting->query == from->query &&
            waiting->epoch == from->epoch && merge_into(record, from, length))
            return true;
    }
    return false;
}

/* Puts one row behind those of the epochs before it, where they still wait. */
static bool lengthen(const struct wire_series *row, uint8_t length)
{
    uint8_t size = (uint8_t)(length - sizeof *row);
    for (struct queue_record *record = queue_any(NULL); record; record = queue_any(record)) {
        const struct wire_series *series = (const struct wire_series *)record->body;
        if (record->type != WIRE_PACKET_SERIES || record->in_flight ||
            series->query != row->query || series->node != row->node ||
            record->length + size > RECORD_LONGEST ||
            series->epoch + (record->length - sizeof *series) / size != row->epoch)
            continue;
        if (!grow(record, size))
            return false;
        memcpy(behind(record) - size, row + 1, size);
        return true;
    }
    return false;
}

/* Puts states of a question to an index together with others of it that wait; false: there are
 * none.
 */
static bool unite(const void *from, uint8_t length)
{
#ifdef BOARD_TUPLES
    for (struct queue_record *record = queue_any(NULL); record; record = queue_any(record)) {
        struct wire_states *into = (struct wire_states *)record->body;
        uint8_t more = record->type == WIRE_PACKET_STATES && !record->in_flight
                           ? app_states_more(into, record->length, from, length)
                           : 0;
        if (more == 0 || record->length + more > RECORD_LONGEST)
            continue;
        if (!grow(record, more))
            return false;
        app_states_unite(into, from);
        return true;
    }
#else
    (void)from, (void)length;
#endif
    return false;
}

struct queue_record *queue_append(uint8_t type, const void *body, uint8_t length)
{
    if (sizeof(struct queue_record) + length > queue_room())
        return NULL;
    struct queue_record *record = (struct queue_record *)end();
    memset(record, 0, sizeof *record);
    record->length = length;
    record->type = type & 0x1FU;
    memcpy(record->body, body, length);
    queue.used = (uint16_t)(queue.used + sizeof *record + length);
    queue.count++;
    queue_grew();
    return record;
}

bool queue_push(uint8_t type, const void *body, uint8_t length)
{
    length = trimmed(type, body, length);
    if (is_state(type) && length >= sizeof(struct wire_partial) && merge(type, body, length))
        return true;
    if (type == WIRE_PACKET_SERIES && length > sizeof(struct wire_series) && lengthen(body, length))
        return true;
    if (type == WIRE_PACKET_STATES && unite(body, length))
        return true;
    if (queue_append(type, body, length))
        return true;
    queue_lost();
    return false;
}

struct queue_record *queue_any(struct queue_record *record)
{
    return at(record ? behind(record) : queue.records);
}

struct queue_record *queue_next(struct queue_record *record)
{
    do
        record = queue_any(record);
    while (record && record->type == QUEUE_SENT);
    return record;
}

void queue_keep(struct queue_record *record)
{
    record->type = QUEUE_SENT;
    record->in_flight = false;
    queue.count--;
}

void queue_remove(struct queue_record *record)
{
    uint8_t *next = behind(record);
    if (record->type != QUEUE_SENT)
        queue.count--;
    queue.used = (uint16_t)(queue.used - sizeof *record - record->length);
    memmove(record, next, rest((const uint8_t *)record));
}

static bool superfluous(const struct queue_record *own)
{
    for (struct queue_record *heard = queue_any(NULL); heard; heard = queue_any(heard)) {
        if (heard->type == QUEUE_HEARD &&
            app_superfluous((const struct wire_partial *)own->body, own->length,
                            (const struct wire_partial *)heard->body, heard->length))
            return true;
    }
    return false;
}

void queue_withhold(void)
{
    struct queue_record *record = queue_any(NULL);
    while (record) {
        if (record->type == WIRE_PACKET_PARTIAL && superfluous(record)) {
            queue_remove(record);
            record = at((uint8_t *)record);
        } else
            record = queue_any(record);
    }
}

void queue_forget(void)
{
    struct queue_record *record = queue_any(NULL);
    while (record) {
        if (record->type == QUEUE_SENT || record->type == WIRE_PACKET_RESULT ||
            record->type == WIRE_PACKET_PARTIAL || record->type == WIRE_PACKET_SERIES) {
            if (record->type != QUEUE_SENT)
                queue_lost();
            queue_remove(record);
            record = at((uint8_t *)record);
        } else
            record = queue_any(record);
    }
}
