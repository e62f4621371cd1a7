/* Buffers of what a mote sends, each for two that never need it at the same time: it takes 127
 * bytes. Frames that come in share their memory with nothing. */
#ifndef SKERRY_NET_FRAMES_H
#define SKERRY_NET_FRAMES_H

#include "net/mac/mac.h"
#include "wire.h"

/* What goes in control windows: what dissemination sends, and schedule's beacon. Either is written
 * while the MAC is not busy only, and belongs to the MAC until it is through. */
extern struct mac_frame control_frame;

/* A root speaks to the gateway (net/link), everybody else to a parent (net/uplink); which of the
 * two a mote is does not change until it restarts. */
union role_frames {
    struct mac_frame uplink;
    struct {
        /* on its way out of the UART, and on its way in */
        uint8_t out[WIRE_LINK_FRAME_MAXIMUM + 2], in[WIRE_LINK_FRAME_MAXIMUM + 2];
    } link;
};
extern union role_frames role_frames;

#endif
