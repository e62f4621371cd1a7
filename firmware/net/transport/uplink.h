/* Records towards the parent, several a frame, one frame unacknowledged. */
#ifndef SKERRY_NET_UPLINK_H
#define SKERRY_NET_UPLINK_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* True when there is something to send. */
bool uplink_waiting(void);
/* True while a frame is under way that the parent has not acknowledged. */
bool uplink_outstanding(void);
/* True while that frame has been on the air: the parent may have it, or not. */
bool uplink_doubtful(void);
/* True while that frame holds partial state records, which count twice where two parents have
 * them. */
bool uplink_partials(void);
/* The mote's cell begins: sends until nothing is left, then calls uplink_done (transport_ops.h). */
void uplink_start(void);
/* The slot ends: the frame under way stays for the next one. */
void uplink_stop(void);
/* Gives up the frame under way and the rows in the queue: they belong to a session of the root that
 * is over. */
void uplink_forget(void);
/* The record at *at of a bundle's body, and *at behind it; NULL: none is there. */
const struct wire_record *uplink_record(const uint8_t *body, uint8_t length, uint8_t *at);
/* Whether records of a BUNDLE with these flags belong to this session of the root. */
bool uplink_of_session(uint8_t flags);
/* A BUNDLE has come from a child: all its records are taken, or none. */
void uplink_bundle(uint16_t source, const uint8_t *body, uint8_t length);

#endif
