/* IRIS: ATmega1281 at 8 MHz, AT86RF230; MTS-class sensor board. board_reset_cause: MCUSR. */
#ifndef SKERRY_BOARD_H
#define SKERRY_BOARD_H

#include <stdint.h>

/* SREG. Both are shorter and faster than a call; the query engine's tests, on another machine, have
 * their own. */
typedef uint8_t board_interrupts;
#ifdef __AVR__
#include <avr/interrupt.h>

static inline board_interrupts board_interrupts_off(void)
{
    board_interrupts state = SREG;
    cli();
    return state;
}
static inline void board_interrupts_restore(board_interrupts state)
{
    __asm__ volatile("" ::: "memory"); /* what was to happen before is written by now */
    SREG = state;
}
#endif

#include "boards/every.h"

#define BOARD_ID 1
#define BOARD_RADIO_DMW 465
#define BOARD_STANDBY_UW 30
/* On an AVR constants lie in RAM unless they are of this address space of GNU C, which is read by
 * an instruction of its own. Tests build this board's queries on the host. */
#ifdef __FLASH
#define IN_FLASH __flash
#else
#define IN_FLASH
#endif
#define BOARD_SRTS 1
#define BOARD_WAYS 6
#define BOARD_LEADS 1
#define BOARD_TRAILS 4
#define BOARD_CARRIED 96

#endif
