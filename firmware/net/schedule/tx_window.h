/* This mote's own cell in the slot of its level, in which it sends to its parent. */
#ifndef SKERRY_NET_TX_WINDOW_H
#define SKERRY_NET_TX_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* When it begins, ms of the round. `representative`: this mote may count as that sibling, and has
 * to hear it before; WIRE_NO_NODE: as none. */
uint16_t tx_window_start(uint16_t representative);
/* Whether there is something to send that the parent listens for. */
bool tx_window_wanted(void);
void tx_window_open(void);
/* Gives up what is under way, as this mote has left the tree. */
void tx_window_abort(void);
/* A round of data slots; `fresh`: an epoch's rows are to come, and the parent listens again. */
void tx_window_round(bool fresh);

#endif
