/* An IEEE 802.15.4 radio, whatever the chip: one implementation per driver folder.
 *
 * The chip computes and checks the FCS, filters by PAN and short address, and acknowledges frames
 * addressed to this mote by itself. Contention, repetition and duplicates are net/mac's. */
#ifndef SKERRY_DRIVERS_RADIO_H
#define SKERRY_DRIVERS_RADIO_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/clock.h"

/* MAC header and payload, FCS not counted. */
#define RADIO_FRAME_MAXIMUM 125
/* Frames, acknowledged and not yet handed on, that a driver holds at most. */
#define RADIO_HELD 3
/* No time stamp in this frame. */
#define RADIO_NO_STAMP 0xFF
/* Bytes of a time stamp: see net/mac/time.h. */
#define RADIO_STAMP_SIZE 6

enum radio_outcome {
    RADIO_SENT, /* and acknowledged, where the frame asked for it */
    RADIO_NO_ACK,
    RADIO_BUSY,   /* channel was not clear, nothing was sent */
    RADIO_FAILED, /* chip out of step; it was reset */
};

/* A received frame; valid during the call of radio_received only. */
struct radio_frame {
    const uint8_t *psdu; /* MAC header first */
    uint8_t length;      /* <= RADIO_FRAME_MAXIMUM, FCS not counted */
    uint8_t lqi;         /* 0..255 */
    int8_t rssi;         /* dBm */
    ticks_t sfd;         /* when the start-of-frame delimiter ended */
};

/* Resets the chip and leaves it asleep. False when no chip answers. */
bool radio_init(uint16_t pan, uint16_t address, uint8_t channel);
/* Tunes to another channel; what is being received is lost. While a frame is sent it takes effect
 * behind it. */
void radio_channel(uint8_t to);
/* Listening, or asleep. Switching off waits for a transmission under way to finish. */
void radio_on(void);
void radio_off(void);
bool radio_is_on(void);
/* When the last frame began to come in, for whomever, intact or not; net/schedule asks at most 18
 * hours later. */
ticks_t radio_last_start(void);
/* Whether unicast frames to this mote are acknowledged; on after init. Off: they are not delivered
 * either. */
void radio_accept_unicast(bool accept);
/* Whether frames to other motes of this PAN are delivered; off after init. On: none to this one is
 * acknowledged, nor delivered. */
void radio_snoop(bool snoop);
/* Clear-channel assessment, then transmission at once; radio must be on. `stamp` is the offset in
 * the PSDU of RADIO_STAMP_SIZE bytes that radio_stamp fills with the network time of the frame's
 * SFD, or RADIO_NO_STAMP. radio_sent follows from the main loop. False, and nothing is sent
 * nor was the channel assessed, when a transmission is still under way, or when interrupts kept a
 * stamped frame from the ticks it might have gone at: try again. The bytes are copied to the chip
 * before it returns. */
bool radio_send(const uint8_t *psdu, uint8_t length, uint8_t stamp);
/* Output power: the level nearest to so many dBm that the chip has. */
void radio_set_power(int8_t dbm);
/* ms since boot during which the radio was not asleep. */
uint32_t radio_on_time(void);
/* Frames that the chip delivered broken: bad length or buffer read error. */
uint16_t radio_malformed(void);

/* Implemented by net/mac; called from the main loop. */
void radio_received(const struct radio_frame *frame);
void radio_sent(enum radio_outcome outcome);
/* Implemented by net/time; called with interrupts off just before transmission. */
void radio_stamp(uint8_t stamp[RADIO_STAMP_SIZE], ticks_t sfd);

#endif
