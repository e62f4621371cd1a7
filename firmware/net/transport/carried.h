/* Records on ways: those that wait here, and their frames. */
#ifndef SKERRY_NET_CARRIED_H
#define SKERRY_NET_CARRIED_H

#include <stdbool.h>
#include <stdint.h>

#include "net/transport/leading.h"
#include "net/transport/way.h"

enum carried_outcome {
    CARRIED_WAITS,
    CARRIED_NO_ROOM, /* for the record, or for a way */
    CARRIED_NO_WAY,  /* this mote is in no tree */
};

/* Sends a record of WIRE_CARRIED_MAXIMUM bytes at most to another mote, where it should arrive
 * within so many `seconds`, by a way as of way_to. */
enum carried_outcome carried_send(uint16_t destination, const struct way_route *route,
                                  const void *record, uint8_t length, uint16_t seconds,
                                  uint8_t every);
/* Whether one of `length` bytes leaves room for what a neighbour may send, or nothing else waits.
 */
bool carried_takes(uint8_t length);
/* CARRIED from a neighbour. False: malformed, or no way leads from there to this mote. */
bool carried_heard(uint16_t from, const uint8_t *body, uint8_t length);
/* A round begins: what is too late is dropped. */
void carried_age(void);

/* ---- in a way's cells ---- */
/* Whether there is room for what a neighbour may send. */
bool carried_room(void);
/* Sends one record to the way's next mote; its cell begins. */
void carried_cell(struct way *way);
/* The cell is over. */
void carried_cell_over(void);

#endif
