#include "net/transport/carried.h"

#include <stddef.h>
#include <string.h>

#include "drivers/radio.h"
#include "drivers/settings.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/mac/time.h"
#include "net/routing/tree.h"
#include "net/transport/trails.h"
#include "net/transport/transport_conf.h"
#include "net/transport/transport_ops.h"
#include "net/transport/way_table.h"

/* A cell has room for a frame and its repetition. */
#define CELL_TRIES 2
/* Seconds for which one waits at the end of its way until it can be taken. */
#define AT_END_SECONDS 600

struct carried {
    uint8_t way; /* place in the table */
    uint8_t length;
    uint8_t sequence; /* of the way's */
    uint8_t hops;     /* that it has gone */
    uint16_t origin;
    uint16_t deadline; /* network seconds, modulo 2^16 */
    uint8_t body[];
} __attribute__((packed));
#define LONGEST (sizeof(struct carried) + WIRE_CARRIED_MAXIMUM)

static struct {
    uint8_t records[CARRIED_BYTES]; /* one behind the other, the oldest first */
    uint16_t used;                  /* bytes of them */
    struct way *sending;            /* whose first record is on its way out; NULL: none is */
} carried;

/* The first (of NULL) or the next one; NULL at the end. */
static struct carried *next(const struct carried *record)
{
    uint8_t *at = record ? (uint8_t *)(uintptr_t)(record->body + record->length) : carried.records;
    return at < carried.records + carried.used ? (struct carried *)at : NULL;
}

static struct carried *first_of(const struct way *way)
{
    struct carried *record = next(NULL);
    while (record && record->way != way - way_table())
        record = next(record);
    return record;
}

static void drop(struct carried *record)
{
    uint8_t *behind = record->body + record->length;
    memmove(record, behind, (size_t)(carried.records + carried.used - behind));
    carried.used = (uint16_t)(carried.used - (uint16_t)(behind - (uint8_t *)record));
}

/* Makes room at the end; NULL: there is none. */
static struct carried *append(const struct way *way, const void *body, uint8_t length)
{
    if (carried.used + sizeof(struct carried) + length > CARRIED_BYTES)
        return NULL;
    struct carried *record = (struct carried *)(carried.records + carried.used);
    record->way = (uint8_t)(way - way_table());
    record->length = length;
    memcpy(record->body, body, length);
    carried.used = (uint16_t)(carried.used + sizeof *record + length);
    return record;
}

/* The number of the way's next record: not 0, which those have who have had none. */
static uint8_t count(struct way *way)
{
    if (++way->sequence == 0)
        way->sequence = 1;
    return way->sequence;
}

bool way_has_records(const struct way *way) { return first_of(way) != NULL; }

bool way_is_idle(const struct way *way)
{
    bool unused = !way->ready || (!way->sequence && way->idle < WAY_UNUSED),
         awaited = way->by_place && way->previous == WIRE_NO_NODE && unused;
    return way->idle > 1 && !awaited && !way_has_records(way);
}

bool carried_room(void) { return carried.used + LONGEST <= CARRIED_BYTES; }

bool carried_takes(uint8_t length)
{
    return !carried.used ||
           carried.used + sizeof(struct carried) + length + LONGEST <= CARRIED_BYTES;
}

/* Nobody hears of it, but tuples are to be stored, and rows to be joined, all the same. */
void way_drops_records(const struct way *way)
{
    if (carried.sending == way)
        carried.sending = NULL;
    for (struct carried *record; (record = first_of(way)); drop(record))
        if (record->body[0] != WIRE_CARRIES_PING)
            net_not_carried(record->origin, WIRE_OUTCOME_NO_WAY, record->body, record->length);
}

/* Records stay at the end of their way only where tuples are stored. */
static bool is_at_end(const struct carried *record)
{
#ifdef BOARD_TUPLES
    return way_table()[record->way].ends;
#else
    (void)record;
    return false;
#endif
}

static void fail(struct carried *record, uint8_t outcome)
{
    net_not_carried(record->origin, outcome, record->body, record->length);
    drop(record);
}

/* Those that have come from others go on by a way of this mote's own: whoever sent them has none
 * left. Where the way did not go by the tree they cannot, as only the source knows how. */
void way_loses_records(const struct way *way)
{
    struct way *own = NULL;
    bool leads_on = !tree_is_root() || trails_next(way->destination) != WIRE_NO_NODE;
    if (way->previous != WIRE_NO_NODE && !way->by_place && !way->by_vector && leads_on &&
        way_has_records(way))
        own = way_to(way->destination, NULL, way->every);
    for (struct carried *record; (record = first_of(way));) {
        if (!own || own == way) {
            fail(record, WIRE_OUTCOME_NO_WAY);
            continue;
        }
        record->way = (uint8_t)(own - way_table());
        record->sequence = count(own);
    }
}

void way_delivers_records(const struct way *way)
{
    for (struct carried *record; (record = first_of(way));) {
        (void)net_carried(record->origin, record->hops, record->body, record->length);
        drop(record);
    }
}

/* One that has come to its end may be taken by now; any is dropped when it is late. */
static bool is_over(struct carried *record, uint16_t now)
{
    if (is_at_end(record) &&
        net_carried(record->origin, record->hops, record->body, record->length)) {
        drop(record);
        return true;
    }
    if ((int16_t)(record->deadline - now) >= 0)
        return false;
    fail(record, WIRE_OUTCOME_LATE);
    return true;
}

void carried_age(void)
{
    if (!carried.used || !time_known())
        return;
    uint16_t now = (uint16_t)time_at(clock_now()).seconds;
    for (struct carried *record = next(NULL); record;)
        record = next(is_over(record, now) ? NULL : record);
}

enum carried_outcome carried_send(uint16_t destination, const struct way_route *route,
                                  const void *record, uint8_t length, uint16_t seconds,
                                  uint8_t every)
{
    if (!tree_joined() || !time_known())
        return CARRIED_NO_WAY;
    struct way *way = way_to(destination, route, every);
    struct carried *waiting = way ? append(way, record, length) : NULL;
    if (!waiting)
        return CARRIED_NO_ROOM;
    waiting->sequence = count(way);
    waiting->origin = settings()->nodeid;
    waiting->hops = 0;
    waiting->deadline = (uint16_t)((uint16_t)time_at(clock_now()).seconds + seconds);
    if (way->ends)
        way_delivers_records(way);
    return CARRIED_WAITS;
}

/* A mote that passes a PING on puts its number behind it; it is the last that waits. */
static void sign(uint8_t *record, uint8_t *length)
{
    uint16_t own = settings()->nodeid;
    if (record[0] != WIRE_CARRIES_PING || *length + sizeof own > WIRE_CARRIED_MAXIMUM ||
        carried.used + sizeof own > CARRIED_BYTES)
        return;
    memcpy(record + *length, &own, sizeof own);
    *length = (uint8_t)(*length + sizeof own);
    carried.used = (uint16_t)(carried.used + sizeof own);
}

bool carried_heard(uint16_t from, const uint8_t *body, uint8_t length)
{
    const struct wire_carried *frame = (const struct wire_carried *)body;
    if (length <= sizeof *frame || length > sizeof *frame + WIRE_CARRIED_MAXIMUM)
        return false;
    struct way *way = way_of(from, frame->source, frame->number);
    length = (uint8_t)(length - sizeof *frame);
#ifdef BOARD_TUPLES
    if (!way && frame->record[0] == WIRE_CARRIES_TUPLE)
        way = way_forgotten(from, frame->source, frame->number, frame->hops);
#endif
    if (!way) {
        /* The radio has acknowledged it, so that nobody else has it any more: a tuple goes on by a
         * way of this mote's own, and a row up the tree. */
        if (frame->record[0] == WIRE_CARRIES_TUPLE || frame->record[0] == WIRE_CARRIES_ROW)
            net_not_carried(frame->origin, WIRE_OUTCOME_NO_WAY, frame->record, length);
        return false;
    }
    bool again = frame->sequence == way->sequence;
    /* How it goes on from here is another question: who sends in vain opens it anew, however much
     * comes. */
    way->idle = 0;
    if (again)
        return true; /* its sender has missed the acknowledgement */
    if (!way->ends || !net_carried(frame->origin, frame->hops, frame->record, length)) {
        struct carried *record = append(way, frame->record, length);
        if (!record)
            return true; /* The schedule stops acknowledging before this can happen. */
        record->sequence = frame->sequence;
        record->origin = frame->origin;
        record->hops = frame->hops;
        record->deadline = frame->deadline;
        if (is_at_end(record))
            record->deadline = (uint16_t)(time_at(clock_now()).seconds + AT_END_SECONDS);
        sign(record->body, &record->length);
    }
    way->sequence = frame->sequence;
    return true;
}

static void sent(enum radio_outcome outcome)
{
    struct way *way = carried.sending;
    carried.sending = NULL;
    if (!way)
        return;
    if (outcome == RADIO_SENT) {
        struct carried *record = first_of(way);
        if (record)
            drop(record);
        way_used(way);
    } else
        way_vain(way);
}

void carried_cell(struct way *way)
{
    const struct carried *record = first_of(way);
    if (!record || mac_busy())
        return;
    struct wire_carried *frame = mac_begin(&control_frame, way->next, WIRE_PACKET_CARRIED);
    *frame = (struct wire_carried){.source = way->source,
                                   .number = way->number,
                                   .sequence = record->sequence,
                                   .origin = record->origin,
                                   .hops = (uint8_t)(record->hops + 1),
                                   .deadline = record->deadline};
    memcpy(frame->record, record->body, record->length);
    mac_finish(&control_frame, (uint8_t)(sizeof *frame + record->length));
    mac_cell_begins();
    if (mac_send(&control_frame, CELL_TRIES, sent))
        carried.sending = way;
}

void carried_cell_over(void)
{
    if (!carried.sending)
        return;
    struct way *way = carried.sending;
    carried.sending = NULL;
    mac_cancel();
    way_vain(way);
}
