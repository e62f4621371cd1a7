/* A ring would split records: this is a row of records in one array, removed by moving the rest up. At 1.8 KB that
 * costs a millisecond at most, a few times a round. */
#include "net/queue.h"

#include <stddef.h>
#include <string.h>

#include "net/outbox.h"
#include "net/schedule.h"
#include "query/query.h"

#define QUEUE_BYTES 1800

static uint8_t bytes[QUEUE_BYTES];
static uint16_t used;
static uint8_t count;
static uint16_t dropped;

static struct queue_record *at(uint16_t offset) { return (struct queue_record *)(bytes + offset); }
static uint16_t size_of(const struct queue_record *record) { return (uint16_t)(sizeof *record + record->length); }

uint8_t queue_length(void) { return count; }
uint16_t queue_dropped(void) { return dropped; }
uint16_t queue_room(void) { return QUEUE_BYTES - used; }

void queue_lost(void)
{
    if (dropped != UINT16_MAX) dropped++;
}

uint8_t queue_size(uint8_t type, const void *body, uint8_t length)
{
    if (type != WIRE_PACKET_PARTIAL || length < sizeof(struct wire_partial)) return length;
    uint8_t whole = query_partial_size(((const struct wire_partial *)body)->query);
    return whole > length ? whole : length;
}

uint8_t queue_trimmed(const struct queue_record *record)
{
    uint8_t length = record->length;
    if (record->type != WIRE_PACKET_PARTIAL || length < sizeof(struct wire_partial)) return length;
    while (length - sizeof(struct wire_partial) >= sizeof(struct wire_aggregate_state)) {
        for (uint8_t i = 1; i <= sizeof(struct wire_aggregate_state); i++)
            if (record->body[length - i] != 0) return length;
        length -= sizeof(struct wire_aggregate_state);
    }
    return length;
}

static bool merge(const void *body, uint8_t length, uint8_t size)
{
    for (uint16_t offset = 0; offset < used; offset += size_of(at(offset))) {
        struct queue_record *record = at(offset);
        if (record->type != WIRE_PACKET_PARTIAL || record->in_flight || record->length != size) continue;
        struct wire_partial *into = (struct wire_partial *)record->body;
        const struct wire_partial *from = body;
        if (into->query == from->query && into->epoch == from->epoch && query_merge(into, size, from, length)) return true;
    }
    return false;
}

bool queue_push(uint8_t type, const void *body, uint8_t length)
{
    uint8_t size = queue_size(type, body, length);
    if (type == WIRE_PACKET_PARTIAL && length >= sizeof(struct wire_partial) && merge(body, length, size)) return true;
    if (sizeof(struct queue_record) + size > queue_room()) {
        queue_lost();
        return false;
    }
    struct queue_record *record = at(used);
    *record = (struct queue_record){.length = size, .type = type};
    memcpy(record->body, body, length);
    memset(record->body + length, 0, size - length);
    used += size_of(record);
    count++;
    schedule_queue_grew();
    return true;
}

struct queue_record *queue_next(struct queue_record *record)
{
    uint16_t offset = record ? (uint16_t)((uint8_t *)record - bytes + size_of(record)) : 0;
    return offset < used ? at(offset) : 0;
}

void queue_remove(struct queue_record *record)
{
    uint16_t offset = (uint16_t)((uint8_t *)record - bytes), size = size_of(record);
    memmove(bytes + offset, bytes + offset + size, used - offset - size);
    used -= size;
    count--;
}

void queue_forget(void)
{
    struct queue_record *record = queue_next(NULL);
    while (record) {
        if (record->type == WIRE_PACKET_RESULT || record->type == WIRE_PACKET_PARTIAL) {
            queue_remove(record);
            queue_lost();
            record = (uint8_t *)record < bytes + used ? record : NULL;
        } else record = queue_next(record);
    }
}
