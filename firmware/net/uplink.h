/* Records towards the parent, several a frame, one frame unacknowledged. */
#ifndef SKERRY_NET_UPLINK_H
#define SKERRY_NET_UPLINK_H

#include <stdbool.h>
#include <stdint.h>

/* True when there is something to send. */
bool uplink_waiting(void);
/* True while the frame under way has been on the air and the parent has not acknowledged it: it may have it, or not. */
bool uplink_doubtful(void);
/* The mote's cell begins: sends until nothing is left, then calls uplink_done. */
void uplink_start(void);
/* The slot ends: the frame under way stays for the next one. */
void uplink_stop(void);
/* Gives up the frame under way and the rows in the queue: they belong to a session of the root that is over. */
void uplink_forget(void);
/* A BUNDLE from a child: all its records or none. */
void uplink_bundle(const uint8_t *body, uint8_t length);

/* Implemented by schedule: nothing is left to send, or the cell is over; the parent has a frame with this enum wire_bundle. */
void uplink_done(void);
void uplink_sent(uint8_t flags);

#endif
