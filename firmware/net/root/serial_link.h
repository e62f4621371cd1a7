/* The root's serial line to the gateway: link frames in COBS, reliable both ways
 * (skerry_protocol/framing.py). */
#ifndef SKERRY_NET_SERIAL_LINK_H
#define SKERRY_NET_SERIAL_LINK_H

#include <stdbool.h>
#include <stdint.h>

/* At the root only. */
void serial_link_init(void);
/* There may be records to send. */
void serial_link_pump(void);

/* Implemented by net.c: a packet that asks something of the network, from the gateway or from a
 * neighbour; `unicast`: to this mote alone. False: it asks nothing, or is too short or too long. */
bool net_asked(uint8_t type, const uint8_t *body, uint8_t length, bool unicast);

#endif
