/* A CC2538 mote (OpenMote-CC2538): Cortex-M3 with the radio on chip; analogue sensors.
 * board_reset_cause: bit 0 power-on, bit 3 a reset by the firmware itself: commanded, a hang, or a
 * CPU fault. */
#ifndef SKERRY_BOARD_H
#define SKERRY_BOARD_H

#include <stdint.h>

/* PRIMASK. */
typedef uint32_t board_interrupts;

#include "boards/every.h"

#define BOARD_ID 2
#define BOARD_RADIO_DMW 600
#define BOARD_STANDBY_UW 5
#define IN_FLASH
#define BOARD_SRTS 4
#define BOARD_WAYS 32
#define BOARD_LEADS 8
#define BOARD_TRAILS 32
#define BOARD_CARRIED 1024
#define BOARD_TUPLES

/* This board's own: the 32 MHz crystal, which radio and UART need, is running and drives the CPU.
 * At most 0.5 ms. */
void board_clock_wait(void);

#endif
