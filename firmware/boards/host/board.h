/* The host: for unit tests, sanitizers and fuzzers only. The same names as every board.h. */
#ifndef SKERRY_BOARD_H
#define SKERRY_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#define BOARD_ID 255

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
uint16_t board_free_ram(void);
void board_watchdog(void);

#endif
