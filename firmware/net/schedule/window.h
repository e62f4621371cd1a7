/* What keeps the radio on: the windows that are open. Of those that listen, control and RX, the one
 * that was opened last has the timers. And whether frames that come meanwhile are acknowledged. */
#ifndef SKERRY_NET_WINDOW_H
#define SKERRY_NET_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/timer.h"

enum window {
    WINDOW_CONTROL = 1 << 0, /* beacons and floods, of all with all */
    WINDOW_RX = 1 << 1,      /* the cell of a child, or of a sibling, that may send */
    WINDOW_TX = 1 << 2,      /* this mote's own cell, until all is sent or the slot is over */
};
void window_open(enum window window);
void window_close(enum window window);
bool window_is_open(enum window window);
/* Switches the radio off, unless a window is open, a frame is on its way, or everybody is to stay
 * awake. */
void window_sleep_if_idle(void);

/* Of the window that listens: when it ends at the latest, and when it has been quiet for long
 * enough. */
extern struct window_timers {
    struct timer end, quiet;
} window_timers;

/* Frames to this mote are acknowledged where there is room for what they may hold. */
void window_accept_by_room(void);
/* A round with an epoch's rows: what this mote has queued of its own since window_note_room needs
 * room again. */
void window_measure_own(void);
/* The data slots of a round are over. */
void window_note_room(void);

#endif
