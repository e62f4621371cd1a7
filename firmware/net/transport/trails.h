/* Trails: by which child a mote below this one is reached. A mote that is to be found tells its
 * parent, which tells its own, and so on up to the root. */
#ifndef SKERRY_NET_TRAILS_H
#define SKERRY_NET_TRAILS_H

#include <stdbool.h>
#include <stdint.h>

void trails_init(void);
/* This mote is in no tree any more. */
void trails_forget(void);
/* This mote is to be found. */
void trails_lay(void);
/* It has another parent, by whom trails lead on. */
void trails_parent_changed(void);
/* The child by whom a mote is reached; WIRE_NO_NODE: there is no trail. */
uint16_t trails_next(uint16_t destination);
/* The trail by `next` leads nowhere. */
void trails_end(uint16_t destination, uint16_t next);
/* TRAIL from a neighbour. False: malformed. */
bool trails_heard(uint16_t from, const uint8_t *body, uint8_t length);
/* Likewise, as ways of the same name. */
void trails_window(bool all_awake);
bool trails_waiting(void);
bool trails_send(void);

#endif
