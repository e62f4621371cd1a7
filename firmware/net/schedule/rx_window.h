/* Cells of others in which this mote listens: of its children, in the slot below its own, and of
 * siblings whose states may make its own superfluous (transport/snoop.h). */
#ifndef SKERRY_NET_RX_WINDOW_H
#define SKERRY_NET_RX_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* The children's slot begins. */
void rx_window_listen(void);
/* The children's slot is over for this mote. */
void rx_window_close(void);
/* This mote's own slot begins: it snoops, where that may save a frame. */
void rx_window_snoop(void);
void rx_window_snoop_over(void);
/* The sibling as which this mote may count, and to which it listens; WIRE_NO_NODE: none. */
uint16_t rx_window_representative(void);
/* A frame to this mote has come; `pending`: its sender has more. */
void rx_window_heard(bool pending);

#endif
