/* The queue as net/ sees it: what net/queue.h fills, uplink (or, at the root, link) empties. */
#ifndef SKERRY_NET_OUTBOX_H
#define SKERRY_NET_OUTBOX_H

#include "net/queue.h"

struct queue_record {
    uint8_t length;   /* of body */
    uint8_t type;
    uint8_t in_flight; /* at the root: sent on the serial line, not yet acknowledged */
    uint8_t sequence;  /* of that link frame */
    uint8_t body[];
};

/* First record (of NULL) or the one after; NULL at the end. Pushing and removing void all pointers behind. */
struct queue_record *queue_next(struct queue_record *record);
void queue_remove(struct queue_record *record);
/* Drops, and counts as dropped, rows and partial state records: they belong to a session of the root that is over. */
void queue_forget(void);
uint16_t queue_dropped(void);

#endif
