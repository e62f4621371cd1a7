/* IRIS: ATmega1281 at 8 MHz, AT86RF230; MTS-class sensor board. Every board.h offers these names. */
#ifndef SKERRY_BOARD_H
#define SKERRY_BOARD_H

#include <stdbool.h>
#include <stdint.h>

/* Value of wire_status.board. */
#define BOARD_ID 1
/* What the board takes at 3 V: in tenths of mW while the radio listens, in uW while it sleeps. */
#define BOARD_RADIO_DMW 465
#define BOARD_STANDBY_UW 30

/* Clocks, pins, crystal timer. First call in main. */
void board_init(void);
/* The chip's reset flags at boot (MCUSR). */
uint8_t board_reset_cause(void);
void board_reboot(void) __attribute__((noreturn));
/* Sleeps until an interrupt, deep or idle; called with interrupts off, returns with them on. */
void board_sleep(bool deep);
/* An interrupt at or just after `due`, less than 18 hours ahead; called with interrupts off, as the next two are. */
void board_alarm(uint32_t due);
void board_alarm_off(void);
/* Whether the alarm's time has come. */
bool board_alarm_reached(void);
uint32_t board_interrupts_off(void);          /* returns the previous state */
void board_interrupts_restore(uint32_t state);
/* Bit 0 red, 1 green, 2 yellow. */
void board_leds(uint8_t mask);
/* Whether a low button pin calls button_interrupt, in deep sleep as well; on after a start. */
void board_button_watch(bool on);
bool board_button_down(void);
/* Sets the pin that switches an actuator. Low after a start. */
void board_actuator(bool on);
/* Bytes between data and the deepest stack so far. */
uint16_t board_free_ram(void);
/* Feeds the watchdog; the main loop does. */
void board_watchdog(void);

#endif
