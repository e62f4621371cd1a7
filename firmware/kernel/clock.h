/* The mote's own clock: the 32,768 Hz crystal, never stopped, awake or asleep. */
#ifndef SKERRY_KERNEL_CLOCK_H
#define SKERRY_KERNEL_CLOCK_H

#include <stdint.h>

/* 1/32768 s since boot; wraps after 36 hours, so compare with clock_reached. */
typedef uint32_t ticks_t;

#define CLOCK_TICKS_PER_SECOND 32768UL
/* Milliseconds, at most 1048000, to ticks, rounded up: 4096 ticks are 125 ms. A constant expression
 * for constant arguments. */
#define CLOCK_MS(ms) ((ticks_t)(((uint32_t)(ms) * 4096U + 124U) / 125U))

/* Now. Safe in interrupt handlers. Implemented by the board. */
ticks_t clock_now(void);
/* Seconds since boot; does not wrap within 136 years. */
uint32_t clock_uptime(void);

/* True when `now` is at or after `due`; the two lie less than 18 hours apart. */
static inline int clock_reached(ticks_t now, ticks_t due) { return (int32_t)(now - due) >= 0; }

#endif
