/* The queue as net/ sees it: what net/transport/queue.h fills, uplink (or, at the root, link)
 * empties. */
#ifndef SKERRY_NET_OUTBOX_H
#define SKERRY_NET_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

struct queue_record {
    uint8_t length; /* of body */
    /* QUEUE_SENT: a row that has gone and is kept for comparison; queue_next passes over it */
    uint8_t type : 5;
    uint8_t in_flight : 1; /* at the root: sent on the serial line, not yet acknowledged */
    /* a row of this mote whose query has a QUEUE clause; a tally is behind it */
    uint8_t own : 1;
    uint8_t apart : 1; /* own, delta: a row between it and the one before it has gone */
    union {
        uint8_t sequence; /* in flight: of that link frame */
        uint16_t score;   /* own, delta */
    };
    uint8_t body[];
} __attribute__((packed));
#define QUEUE_SENT 0

/* What a mote says of its own health, which rows do not wait for. */
static inline bool queue_is_report(uint8_t type)
{
    return type == WIRE_PACKET_STATUS || type == WIRE_PACKET_FLASH;
}

/* First record (of NULL) or the one after; NULL at the end. Pushing and removing void all pointers
 * behind. */
struct queue_record *queue_next(struct queue_record *record);
void queue_remove(struct queue_record *record);
/* Likewise, those of QUEUE_SENT too. */
struct queue_record *queue_any(struct queue_record *record);
/* Makes it one of QUEUE_SENT. */
void queue_keep(struct queue_record *record);
/* Appends a record; NULL without room, which is not counted. */
struct queue_record *queue_append(uint8_t type, const void *body, uint8_t length);

/* Drops, and counts as dropped, rows and partial state records: they belong to a session of the
 * root that is over. */
void queue_forget(void);
uint16_t queue_dropped(void);

#endif
