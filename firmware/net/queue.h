/* Records waiting to travel towards the root. */
#ifndef SKERRY_NET_QUEUE_H
#define SKERRY_NET_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* Appends a record of this mote or one heard from a child; PARTIAL records of one query and epoch
 * are merged by query_merge where one is still waiting. False and counted in dropped when full. */
bool queue_push(uint8_t type, const void *body, uint8_t length);
/* A row of this mote, with room for a tally behind its `length` bytes. Where there is no room for
 * it, its query's policy says what is combined or left out, and the tallies say how much. */
void queue_row(struct wire_result *row, uint8_t length);
/* A query has ended: its rows go as they are. */
void queue_query_ended(uint8_t query);
/* Type of a record that is not sent: partial states heard of other motes, merged as PARTIAL ones
 * are. */
#define QUEUE_HEARD 1
/* Removes the PARTIAL records that change nothing in what was heard. */
void queue_withhold(void);
uint8_t queue_length(void);
/* One more record was lost. */
void queue_lost(void);
/* Free bytes; a record takes its body and four. */
uint16_t queue_room(void);

#endif
