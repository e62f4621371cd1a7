/* JOIN packets to one neighbour: the parent is told that it has a child, or a neighbour is asked
 * for a sequence number of the root. */
#ifndef SKERRY_NET_JOIN_PACKET_H
#define SKERRY_NET_JOIN_PACKET_H

#include <stdbool.h>
#include <stdint.h>

/* Tells a parent that it has a child, in the next control window and until it has acknowledged;
 * WIRE_NO_NODE: nobody. `again`: it should know, and rows need not wait. */
void join_packet_tell(uint16_t parent, bool again);
/* The parent that has been told in vain is told once more in this window. */
void join_packet_again(void);
/* Rows have to wait: the parent does not know yet. */
bool join_packet_holds_data(void);
/* In this control window, or the next, a neighbour is asked once for a sequence number of the root
 * later than `after`. WIRE_NO_NODE: nobody any more. */
void join_packet_ask(uint16_t node, uint8_t after);
/* In a control window: whether one is due, and sends the next; false when none is. */
bool join_packet_waits(void);
bool join_packet_send(void);

#endif
