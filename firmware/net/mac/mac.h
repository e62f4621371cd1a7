/* Medium access: 802.15.4 data frames, contention, repetition, duplicates. One frame at a time. */
#ifndef SKERRY_NET_MAC_H
#define SKERRY_NET_MAC_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/radio.h"
#include "wire.h"

/* A frame under construction or on its way; its owner keeps it until the handler is called. */
struct mac_frame {
    uint8_t length; /* MAC header and packet */
    uint8_t stamp;  /* offset of a time stamp in the frame, or RADIO_NO_STAMP */
    uint8_t bytes[RADIO_FRAME_MAXIMUM];
};

typedef void mac_handler(enum radio_outcome outcome);

void mac_init(void);
/* Writes MAC header (the next sequence number) and packet header; returns where the body begins. */
void *mac_begin(struct mac_frame *frame, uint16_t destination, uint8_t type);
/* Fixes the length of the body. */
void mac_finish(struct mac_frame *frame, uint8_t body);
/* Sends after contention, at most `tries` times when it asks for an acknowledgement and gets none.
 * False while another frame is on its way or the radio is off. */
bool mac_send(struct mac_frame *frame, uint8_t tries, mac_handler *done);
bool mac_busy(void);
/* The next frame is the first in a cell of this mote's own, where others are not expected and the
 * receiver does not listen for long. */
void mac_cell_begins(void);
/* How contended the channel was of late, 0..31. */
uint8_t mac_contention(void);
/* Gives up the frame under way; its handler is not called. */
void mac_cancel(void);

extern struct mac_counters {
    uint32_t sent, repeated;
    uint16_t malformed, loops;
} mac_counters;

/* Implemented by net.c: a packet from a neighbour, version checked, no bundle that was here before.
 */
void net_packet(const struct radio_frame *frame, uint16_t source, bool unicast, uint8_t type,
                const uint8_t *body, uint8_t length);
/* Implemented by rx_window: a bundle from another mote to another one, while the radio snoops. */
void net_overheard(uint16_t source, uint16_t destination, const uint8_t *body, uint8_t length);
/* Implemented by net.c: a bundle that was here before, as its sender has missed the
 * acknowledgement. */
void net_repeated(uint16_t source, const uint8_t *body, uint8_t length);

#endif
