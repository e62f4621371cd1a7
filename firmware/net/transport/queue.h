/* Records waiting to travel towards the root. */
#ifndef SKERRY_NET_QUEUE_H
#define SKERRY_NET_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* Appends a record of this mote or one heard from a child; PARTIAL records of one query and epoch
 * are merged by app_merge where one is still waiting, STATES of a question by app_states_unite.
 * False and counted in dropped when full. */
bool queue_push(uint8_t type, const void *body, uint8_t length);
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
