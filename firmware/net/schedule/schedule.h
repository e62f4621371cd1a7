/* When the radio is on: rounds of one second of network time, each with a control window (every
 * fourth) and, when there can be something to send, data slots by level, deepest first (TinyDB
 * 2005, 6.1.1). */
#ifndef SKERRY_NET_SCHEDULE_H
#define SKERRY_NET_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/clock.h"

void schedule_init(void);
/* This mote has joined, left, or its clock or level changed: plan anew. */
void schedule_restart(void);
/* Something was heard: listeners stay awake. `pending`: its sender has more. */
void schedule_heard(bool pending);
/* … a bundle from a child, with its enum wire_bundle. */
void schedule_bundle(uint16_t source, uint8_t flags);
/* … a beacon: its sender may be asked for queries, but the window need not grow. */
void schedule_beacon_heard(void);
/* Beacons at once, in a control window of its own: somebody listens who knows no better. */
void schedule_beacon_now(void);
/* A session of the root has begun, in place of another one or `again` as the root has restarted. */
void schedule_session(bool again);
/* … and that is not long ago. */
bool schedule_session_young(void);
/* All queries have long periods, or there are none: control windows and reports are rare. */
bool schedule_slow(void);
/* There is something to disseminate. */
void schedule_control(void);

/* Implemented by root/serial_link, at the root: all slots of a round are over, in which there may
 * have been `data`. */
void schedule_round_over(bool data);
/* Implemented by health/status: a round begins; each so many rounds, a power of two, a mote
 * reports. */
void schedule_round_begins(uint16_t round);
uint16_t schedule_report_rounds(void);

#endif
