/* The main loop: events first, then due timers, then sleep. */
#ifndef SKERRY_KERNEL_KERNEL_H
#define SKERRY_KERNEL_KERNEL_H

#include <stdbool.h>

/* Runs all pending events and due timers once; false when there was nothing to do. */
bool kernel_step(void);
/* kernel_step for ever, sleeping as deeply as power.h allows whenever it returns false. */
void kernel_run(void) __attribute__((noreturn));

#endif
