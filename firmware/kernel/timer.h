/* One-shot timers, run from the main loop. The caller owns the struct, which must outlive its run.
 */
#ifndef SKERRY_KERNEL_TIMER_H
#define SKERRY_KERNEL_TIMER_H

#include <stdbool.h>

#include "kernel/clock.h"

typedef void timer_handler(void);

struct timer {
    ticks_t due;
    timer_handler *handler;
    struct timer *next;
    bool running;
};

/* Calls `handler` once from the main loop at or after `due`, at most 18 hours ahead. A running
 * timer is moved. */
void timer_start(struct timer *timer, ticks_t due, timer_handler *handler);
/* Likewise so many ticks from now, less than two seconds. */
void timer_after(struct timer *timer, uint16_t ticks, timer_handler *handler);
/* Whether nothing is to run from now on for so many ticks: no timer, and no event that was posted.
 */
bool timer_none_within(ticks_t ticks);
/* No effect on a timer that does not run. */
void timer_stop(struct timer *timer);

#endif
