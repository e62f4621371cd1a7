/* What keeps the radio on: the windows that are open, when the one that listens closes, and whether
 * frames that come meanwhile are acknowledged. */
#ifndef SKERRY_NET_WINDOW_H
#define SKERRY_NET_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/timer.h"

enum window {
    WINDOW_CONTROL = 1 << 0, /* beacons and floods, of all with all */
    WINDOW_RX = 1 << 1,      /* the cell of a child, or of a sibling, that may send */
    WINDOW_TX = 1 << 2,      /* this mote's own cell, until all is sent or the slot is over */
    WINDOW_WAY = 1 << 3,     /* a cell of a way from mote to mote */
};
void window_open(enum window window);
void window_close(enum window window);
bool window_is_open(enum window window);
/* Switches the radio off, unless a window is open, a frame is on its way, or everybody is to stay
 * awake. */
void window_sleep_if_idle(void);

/* The window that listens, control or RX, closes at `at` at the latest. */
void window_closes(ticks_t at, timer_handler *close);
void window_closes_no_more(void);
/* It is looked at then, in place of a moment that was set before: it may have been quiet for long
 * enough, or there is a cell to listen to. */
void window_look(ticks_t at, timer_handler *look);
void window_look_after(uint16_t ticks, timer_handler *look);
/* Where a moment is set that is earlier than `at`, it is put off until then. */
void window_look_not_before(ticks_t at, timer_handler *look);
void window_look_no_more(void);

/* Frames to this mote are acknowledged where there is room for what they may hold. */
void window_accept_by_room(void);
/* A round with an epoch's rows: what this mote has queued of its own since window_note_room needs
 * room again. */
void window_measure_own(void);
/* The data slots of a round are over. */
void window_note_room(void);

#endif
