/* Outside the tree: when a mote listens for a network. */
#ifndef SKERRY_NET_SEARCH_H
#define SKERRY_NET_SEARCH_H

#include <stdint.h>

/* This mote is not in a tree, or does not know the time: begins to search, or begins anew. */
void search_begin(void);
/* It has joined. */
void search_end(void);

/* Implemented by schedule: this mote, which has left the tree, says so in the control window that
 * begins after so many ticks. */
void search_leave_notice(uint16_t before);

#endif
