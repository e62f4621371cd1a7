/* What the rest of the firmware asks of a board. Each board.h includes this, says before it what
 * holds the state of the interrupts, board_interrupts, and besides:
 * - BOARD_ID: value of wire_status.board;
 * - BOARD_RADIO_DMW: what the board takes at 3 V while the radio listens, in tenths of mW;
 * - BOARD_STANDBY_UW: … while it sleeps, in uW;
 * - BOARD_SRTS: semantic routing trees that it holds at once;
 * - BOARD_WAYS, BOARD_LEADS, BOARD_TRAILS, BOARD_CARRIED: ways from mote to mote that lead by it,
 * those that it leads on to places at once, trails to motes below it, and bytes of records that
 * wait to be passed on;
 * - BOARD_TUPLES, where the board stores tuples of indexes (drivers/pages.h);
 * - IN_FLASH: where a constant table is to lie that is not to take RAM, a qualifier of its type as
 *   `const` is; nothing on chips whose constants lie in flash anyway. */
#ifndef SKERRY_BOARDS_EVERY_H
#define SKERRY_BOARDS_EVERY_H

#include <stdbool.h>
#include <stdint.h>

/* Clocks, pins, the timer of the 32,768 Hz crystal. First call in main. */
void board_init(void);
/* Why it started: the chip's flags, see board.h. Nothing but BOARD_RESET_BY_FIRMWARE on every board
 * where the RAM has kept what it held: the firmware has called board_reboot, or it hung. */
#define BOARD_RESET_BY_FIRMWARE (1U << 3)
uint8_t board_reset_cause(void);
void board_reboot(void) __attribute__((noreturn));
/* Takes some ms, after board_init: bits that differ from chip to chip and from start to start. For
 * names that shall not repeat; no secrets. */
uint32_t board_noise(void);
/* What the chip's maker has numbered it by; 0: it has not. */
uint32_t board_factory(void);
/* Sleeps until an interrupt, deep or idle, and returns once that has been served; interrupts are
 * off before and after. */
void board_sleep(bool deep);
/* An interrupt at or just after `due`, less than 18 hours ahead; called with interrupts off, as the
 * next two are. */
void board_alarm(uint32_t due);
void board_alarm_off(void);
/* Whether the alarm's time has come. */
bool board_alarm_reached(void);
board_interrupts board_interrupts_off(void); /* returns the previous state */
void board_interrupts_restore(board_interrupts state);
/* Bit 0 red, 1 green, 2 yellow. */
void board_leds(uint8_t mask);
/* Whether a low button pin calls button_interrupt, in deep sleep as well; on after a start. */
void board_button_watch(bool on);
bool board_button_down(void);
/* Sets the pin that switches an actuator. Low after a start. */
void board_actuator(bool on);
/* Bytes between data and the deepest stack so far. */
uint16_t board_free_ram(void);
/* Feeds what notices a hang; the main loop does. */
void board_watchdog(void);

#endif
