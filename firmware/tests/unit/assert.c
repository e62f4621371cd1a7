/* sources: kernel/assert.c. Reasons of a restart outlive it, and only it. */
#include "kernel/assert.h"

#include <setjmp.h>

#include "board.h"
#include "unit.h"

static uint8_t cause;
static jmp_buf rebooted;

uint8_t board_reset_cause(void) { return cause; }
void board_reboot(void) { longjmp(rebooted, 1); }

/* The run ends by this invariant, or is asked to (0), and the next one begins. */
static uint8_t after(uint8_t which)
{
    if (!setjmp(rebooted)) {
        if (which)
            invariant_broken(which);
        kernel_restart();
    }
    cause = BOARD_RESET_BY_FIRMWARE;
    invariant_init();
    return invariant_last();
}

static void a_broken_invariant_is_known_in_the_next_run_alone(void)
{
    cause = 1;
    invariant_init();
    CHECK_EQUAL(invariant_last(), 0);
    for (uint8_t which = 1; which <= WIRE_INVARIANT_RADIO_HELD; which++)
        CHECK_EQUAL(after(which), which);
    CHECK_EQUAL(after(0), 0);
}

static void a_reset_of_which_nothing_was_said_was_a_hang(void)
{
    CHECK_EQUAL(after(WIRE_INVARIANT_QUEUE), WIRE_INVARIANT_QUEUE);
    invariant_init();
    CHECK_EQUAL(invariant_last(), WIRE_INVARIANT_MAIN_LOOP);
    invariant_init();
    CHECK_EQUAL(invariant_last(), WIRE_INVARIANT_MAIN_LOOP);
    CHECK_EQUAL(after(0), 0);
}

static void after_a_loss_of_power_memory_says_nothing(void)
{
    CHECK_EQUAL(after(WIRE_INVARIANT_TIMERS), WIRE_INVARIANT_TIMERS);
    if (!setjmp(rebooted))
        invariant_broken(WIRE_INVARIANT_EVENTS);
    for (uint8_t flags = 0; flags < 32; flags++) {
        if (flags == BOARD_RESET_BY_FIRMWARE)
            continue;
        cause = flags;
        invariant_init();
        CHECK_EQUAL(invariant_last(), 0);
    }
}

static void what_holds_goes_on(void)
{
    if (!setjmp(rebooted)) {
        INVARIANT(1 + 1 == 2, QUEUE);
        return;
    }
    CHECK(0);
}

static const struct test tests[] = {
    TEST(a_broken_invariant_is_known_in_the_next_run_alone),
    TEST(a_reset_of_which_nothing_was_said_was_a_hang),
    TEST(after_a_loss_of_power_memory_says_nothing),
    TEST(what_holds_goes_on),
};
UNIT_MAIN(tests)
