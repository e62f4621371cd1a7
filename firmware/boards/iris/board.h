/* IRIS: ATmega1281 at 8 MHz, AT86RF230; MTS-class sensor board. board_reset_cause: MCUSR. */
#ifndef SKERRY_BOARD_H
#define SKERRY_BOARD_H

#include "boards/every.h"

#define BOARD_ID 1
#define BOARD_RADIO_DMW 465
#define BOARD_STANDBY_UW 30
#define BOARD_SRTS 1

#endif
