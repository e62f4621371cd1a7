/* The main loop: order of events and timers, the wrap of the clock, how deeply it sleeps and until
 * when. sources: kernel/kernel.c */
#include "unit.h"

#include "board.h"
#include "kernel/clock.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/power.h"
#include "kernel/timer.h"

static ticks_t now;
static uint32_t alarm_at;
static bool alarm_set;
static int naps, deep_naps;
static void (*during_nap)(void);

ticks_t clock_now(void) { return now; }
board_interrupts board_interrupts_off(void) { return 0; }
void board_interrupts_restore(board_interrupts state) { (void)state; }
void board_alarm(uint32_t due)
{
    alarm_at = due;
    alarm_set = true;
}
void board_alarm_off(void) { alarm_set = false; }
bool board_alarm_reached(void) { return alarm_set && clock_reached(now, alarm_at); }
void board_watchdog(void) {}
void board_sleep(bool deep)
{
    naps++;
    deep_naps += deep;
    if (during_nap)
        during_nap();
    else
        now = alarm_at;
}

static char said[64];
static void say(char c) { said[strlen(said)] = c; }
static void a(void) { say('a'); }
static void b(void) { say('b'); }
static void c(void) { say('c'); }
static struct event event_a = {.handler = a}, event_b = {.handler = b};
static struct timer timer_a, timer_b, timer_c;
static void run(void)
{
    while (kernel_step()) {}
}

static void events_run_in_the_order_of_their_posting_and_once(void)
{
    event_post(&event_b);
    event_post(&event_a);
    event_post(&event_b);
    run();
    CHECK(!strcmp(said, "ba"));
    event_post(&event_b);
    run();
    CHECK(!strcmp(said, "bab"));
}

static int rounds;
static void again(void);
static struct event event_again = {.handler = again};
static void again(void)
{
    if (++rounds < 3)
        event_post(&event_again);
    else
        event_post(&event_a);
}
static void an_event_may_be_posted_again_by_its_own_handler(void)
{
    event_post(&event_again);
    run();
    CHECK_EQUAL(rounds, 3);
    CHECK(!strcmp(said, "a"));
}

static void timers_run_by_due_time_and_those_of_one_time_in_the_order_of_their_start(void)
{
    timer_start(&timer_c, 30, c);
    timer_start(&timer_a, 10, a);
    timer_start(&timer_b, 10, b);
    run();
    CHECK(!strcmp(said, ""));
    now = 10;
    run();
    CHECK(!strcmp(said, "ab"));
    now = 29;
    run();
    CHECK(!strcmp(said, "ab"));
    now = 31;
    run();
    CHECK(!strcmp(said, "abc"));
    CHECK(!timer_c.running);
}

static void events_go_before_timers(void)
{
    timer_start(&timer_a, 0, a);
    event_post(&event_b);
    run();
    CHECK(!strcmp(said, "ba"));
}

static void timers_keep_their_order_where_the_clock_wraps(void)
{
    now = 0xFFFFFFF0u;
    timer_start(&timer_b, 5, b);
    timer_start(&timer_a, 0xFFFFFFF8u, a);
    timer_start(&timer_c, 0xFFFFFFFFu, c);
    run();
    CHECK(!strcmp(said, ""));
    now = 0xFFFFFFFFu;
    run();
    CHECK(!strcmp(said, "ac"));
    now = 5;
    run();
    CHECK(!strcmp(said, "acb"));
}

static void a_timer_that_is_moved_or_stopped_does_not_run_at_its_old_time(void)
{
    timer_start(&timer_a, 10, a);
    timer_start(&timer_b, 20, b);
    timer_start(&timer_a, 30, a);
    timer_stop(&timer_b);
    timer_stop(&timer_b);
    now = 25;
    run();
    CHECK(!strcmp(said, ""));
    now = 30;
    run();
    CHECK(!strcmp(said, "a"));
}

static ticks_t due_of_period;
static void tick(void)
{
    say('t');
    due_of_period += 10;
    timer_start(&timer_a, due_of_period, tick);
}
static void stop_b(void) { timer_stop(&timer_b); }
static void a_handler_may_start_its_own_timer_and_stop_others(void)
{
    timer_start(&timer_a, 0, tick);
    for (now = 0; now < 100; now += 7)
        run();
    CHECK_EQUAL(strlen(said), 10);
    timer_start(&timer_b, 200, b);
    timer_start(&timer_c, 150, stop_b);
    timer_stop(&timer_a);
    now = 300;
    run();
    CHECK_EQUAL(strlen(said), 10);
}

static void leave(void) { exit(strcmp(said, "a") || naps != 1 || deep_naps != 1 || now != 100); }
static void the_loop_sleeps_deeply_until_the_first_timer(void)
{
    timer_start(&timer_b, 100, leave);
    event_post(&event_a);
    kernel_run();
}

static void end_idle(void) { exit(naps != 3 || deep_naps != 0); }
static struct event event_end = {.handler = end_idle};
static void wake_thrice(void)
{
    if (naps == 3)
        event_post(&event_end);
}
static void it_only_idles_while_somebody_needs_the_clock_and_sleeps_on_when_woken_for_nothing(void)
{
    power_hold(POWER_UART);
    power_hold(POWER_RADIO);
    power_release(POWER_RADIO);
    CHECK(!power_deep_allowed());
    during_nap = wake_thrice;
    kernel_run();
}

static const struct test tests[] = {
    TEST(events_run_in_the_order_of_their_posting_and_once),
    TEST(an_event_may_be_posted_again_by_its_own_handler),
    TEST(timers_run_by_due_time_and_those_of_one_time_in_the_order_of_their_start),
    TEST(events_go_before_timers),
    TEST(timers_keep_their_order_where_the_clock_wraps),
    TEST(a_timer_that_is_moved_or_stopped_does_not_run_at_its_old_time),
    TEST(a_handler_may_start_its_own_timer_and_stop_others),
    TEST(the_loop_sleeps_deeply_until_the_first_timer),
    TEST(it_only_idles_while_somebody_needs_the_clock_and_sleeps_on_when_woken_for_nothing),
};
UNIT_MAIN(tests)
