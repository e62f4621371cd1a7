/* The host: for unit tests, sanitizers and fuzzers only. The same names as every board.h. */
#ifndef SKERRY_BOARD_H
#define SKERRY_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#define BOARD_ID 255
/* What the board takes at 3 V: in tenths of mW while the radio listens, in uW while it sleeps. */
#define BOARD_RADIO_DMW 0
#define BOARD_STANDBY_UW 0

void board_init(void);
uint8_t board_reset_cause(void);
/* Ends the process: a test that reboots has failed. */
void board_reboot(void) __attribute__((noreturn));
void board_sleep(bool deep);
void board_alarm(uint32_t due);
void board_alarm_off(void);
bool board_alarm_reached(void);
uint32_t board_interrupts_off(void);
void board_interrupts_restore(uint32_t state);
void board_leds(uint8_t mask);
/* Whether a low button pin calls button_interrupt, in deep sleep as well; on after a start. */
void board_button_watch(bool on);
bool board_button_down(void);
/* Sets the pin that switches an actuator. Low after a start. */
void board_actuator(bool on);
uint16_t board_free_ram(void);
void board_watchdog(void);

#endif
