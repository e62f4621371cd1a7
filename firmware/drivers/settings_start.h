/* What every driver of settings does at a start, before it keeps them. */
#ifndef SKERRY_DRIVERS_SETTINGS_START_H
#define SKERRY_DRIVERS_SETTINGS_START_H

#include "board.h"
#include "drivers/settings.h"

static inline struct wire_settings settings_defaults(void)
{
    return (struct wire_settings){.magic = WIRE_SETTINGS_MAGIC,
                                  .nodeid = 0xFFFE,
                                  .pan = WIRE_PAN_DEFAULT,
                                  .channel = WIRE_CHANNEL_DEFAULT,
                                  .channels = WIRE_CHANNELS_DEFAULT};
}

/* A mote flashed again counts its starts anew, and its network may still live in the session that
 * was the last: the first name is none that could be guessed, and the next ones follow it. 0 is
 * none. */
static inline void settings_start(struct wire_settings *own)
{
    own->boots++;
    if (own->session == 0)
        own->session = (uint16_t)board_noise();
    if (++own->session == 0)
        own->session = 1;
    uint32_t chip = board_factory();
    if (chip)
        own->factory = chip;
    else if (own->factory == 0)
        own->factory = board_noise() | 1;
}

/* `own` so that the next start's session comes after both its own and `other`, by the order of
 * numbers that go round (RFC 1982). */
static inline void settings_pass(struct wire_settings *own, uint16_t other)
{
    if ((int16_t)(other - own->session) > 0)
        own->session = other;
}

#endif
