#include "kernel/assert.h"

#include "board.h"

/* Survives a reset, and holds anything after a loss of power: the start's cause tells them apart.
 * `check` is the complement of `which` between a restart and the next start, else 0. */
static struct {
    uint8_t which; /* an enum wire_invariant; 0: the restart was asked for */
    uint8_t check;
} ended __attribute__((section(".noinit")));

void invariant_broken(uint8_t which)
{
    ended.which = which;
    ended.check = (uint8_t)~which;
    board_reboot();
}

void kernel_restart(void) { invariant_broken(0); }

void invariant_init(void)
{
    /* The watchdog has bitten where the firmware reset itself and has not said why. */
    bool said = (ended.which ^ ended.check) == 0xFF;
    if (board_reset_cause() != BOARD_RESET_BY_FIRMWARE)
        ended.which = 0;
    else if (!said)
        ended.which = WIRE_INVARIANT_MAIN_LOOP;
    ended.check = ended.which; /* no complement: the next restart says anew why */
}

uint8_t invariant_last(void) { return ended.which; }
