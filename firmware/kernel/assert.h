/* The policy of assertions. What comes from outside (a frame, a packet, a query program, a byte of
 * the serial line, a setting) may be anything: it is checked where it comes in, and what is bad is
 * counted and dropped. What the firmware itself keeps must hold whatever came in: an INVARIANT says
 * so where the mote would go on with broken state. One that does not hold resets the mote, which
 * comes back with a clean state, and STATUS says which it was until the next start. */
#ifndef SKERRY_KERNEL_ASSERT_H
#define SKERRY_KERNEL_ASSERT_H

#include <stdint.h>

#include "wire.h"

/* `which`: the end of the name of an enum wire_invariant, each of which stands in one place. Two
 * instructions where it holds; safe in interrupt handlers. */
#define INVARIANT(condition, which)                                                                \
    do {                                                                                           \
        if (!(condition))                                                                          \
            invariant_broken(WIRE_INVARIANT_##which);                                              \
    } while (0)

/* Resets the mote; its next start knows the reason. */
void invariant_broken(uint8_t which) __attribute__((noreturn, cold));
/* Resets the mote because somebody asked for it. */
void kernel_restart(void) __attribute__((noreturn));
/* Once, after board_init: why the last run ended. */
void invariant_init(void);
/* The invariant that ended the last run, an enum wire_invariant; 0: none did, or power was lost. */
uint8_t invariant_last(void);

#endif
