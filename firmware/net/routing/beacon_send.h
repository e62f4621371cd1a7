/* This mote's beacon: how it stands in the tree, the table of slots, what is below it, and how well
 * it hears its neighbours. beacon_due.h says when it goes. */
#ifndef SKERRY_NET_BEACON_SEND_H
#define SKERRY_NET_BEACON_SEND_H

#include <stdint.h>

#include "wire.h"

/* Writes the body, but for the time, which the radio stamps; returns its length. */
uint8_t beacon_write(struct wire_beacon *beacon);

#endif
