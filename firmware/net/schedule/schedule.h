/* When the radio is on: rounds of one second of network time (slotframe.h), each with a control
 * window (control_window.h) in one of four and, when there can be something to send, data slots by
 * level, deepest first (rx_window.h, tx_window.h; TinyDB 2005, 6.1.1). */
#ifndef SKERRY_NET_SCHEDULE_H
#define SKERRY_NET_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

void schedule_init(void);
/* This mote has joined, left, or its clock or level has changed: plans anew. */
void schedule_restart(void);
/* Something was heard: listeners stay awake. `pending`: its sender has more. */
void schedule_heard(bool pending);
/* A bundle has come from a child, with this enum wire_bundle: listeners stay awake. */
void schedule_bundle(uint16_t source, uint8_t flags);

/* Implemented by root/serial_link, at the root: all slots of a round are over, in which there may
 * have been `data`. */
void schedule_round_over(bool data);
/* Implemented by health/status: a round begins; each so many rounds, a power of two, a mote
 * reports. */
void schedule_round_begins(uint16_t round);
uint16_t schedule_report_rounds(void);

#endif
