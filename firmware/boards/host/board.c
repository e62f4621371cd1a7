#include "board.h"

#include <stdlib.h>

#include "host.h"
#include "kernel/clock.h"
#include "kernel/kernel.h"

static uint64_t clock_ticks;

void board_init(void) {}
uint8_t board_reset_cause(void) { return 1; }
uint32_t board_noise(void) { return 0; }
uint32_t board_factory(void) { return 0x1EAF; }
void board_reboot(void) { exit(3); }
void board_sleep(bool deep) { (void)deep; }
void board_alarm(uint32_t due) { (void)due; }
void board_alarm_off(void) {}
bool board_alarm_reached(void) { return true; }
board_interrupts board_interrupts_off(void) { return 0; }
void board_interrupts_restore(board_interrupts state) { (void)state; }
void board_leds(uint8_t mask) { (void)mask; }
void board_actuator(bool on) { (void)on; }
void board_button_watch(bool on) { (void)on; }
bool board_button_down(void) { return false; }
uint16_t board_free_ram(void) { return 4000; }
void board_watchdog(void) {}
ticks_t clock_now(void) { return (ticks_t)clock_ticks; }
uint32_t clock_uptime(void) { return (uint32_t)(clock_ticks / CLOCK_TICKS_PER_SECOND); }

void host_run(uint32_t ticks, uint32_t step)
{
    for (uint32_t passed = 0; passed < ticks; passed += step) {
        clock_ticks += step;
        for (uint16_t i = 0; kernel_step(); i++)
            if (i == 10000)
                abort(); /* the mote would never sleep again */
    }
}
