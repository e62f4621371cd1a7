/* The host: for unit tests, sanitizers and fuzzers only. board_reboot ends the process: a test that
 * reboots has failed. */
#ifndef SKERRY_BOARD_H
#define SKERRY_BOARD_H

#include <stdint.h>

typedef uint32_t board_interrupts;

#include "boards/every.h"

#define BOARD_ID 255
#define BOARD_RADIO_DMW 0
#define BOARD_STANDBY_UW 0
#define IN_FLASH
#define BOARD_SRTS 2
#define BOARD_WAYS 6
#define BOARD_LEADS 1
#define BOARD_TRAILS 4
#define BOARD_CARRIED 96
#define BOARD_TUPLES

#endif
