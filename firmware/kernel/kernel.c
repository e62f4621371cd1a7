#include "kernel/kernel.h"

#include <stddef.h>

#include "board.h"
#include "kernel/assert.h"
#include "kernel/event.h"
#include "kernel/power.h"
#include "kernel/timer.h"

static struct event *volatile first_event;
static struct event *last_event;
static struct timer *timers; /* sorted by due */
static volatile uint8_t power_users;

void event_post(struct event *event)
{
    board_interrupts state = board_interrupts_off();
    if (!event->pending) {
        event->pending = true;
        event->next = NULL;
        if (first_event)
            last_event->next = event;
        else
            first_event = event;
        last_event = event;
    }
    board_interrupts_restore(state);
}

static struct event *event_take(void)
{
    board_interrupts state = board_interrupts_off();
    struct event *event = first_event;
    if (event) {
        INVARIANT(event->pending, EVENTS);
        first_event = event->next;
        event->pending = false;
    }
    board_interrupts_restore(state);
    return event;
}

void timer_stop(struct timer *timer)
{
    if (!timer->running)
        return;
    struct timer **at = &timers;
    while (*at != timer) {
        INVARIANT(*at, TIMERS);
        at = &(*at)->next;
    }
    *at = timer->next;
    timer->running = false;
}

void timer_start(struct timer *timer, ticks_t due, timer_handler *handler)
{
    timer_stop(timer);
    timer->due = due;
    timer->handler = handler;
    timer->running = true;
    struct timer **at = &timers;
    while (*at && clock_reached(due, (*at)->due))
        at = &(*at)->next;
    timer->next = *at;
    *at = timer;
}

void timer_after(struct timer *timer, uint16_t ticks, timer_handler *handler)
{
    timer_start(timer, clock_now() + ticks, handler);
}

bool timer_none_within(ticks_t ticks)
{
    return !first_event && (!timers || !clock_reached(clock_now() + ticks, timers->due));
}

static bool timer_run(void)
{
    struct timer *timer = timers;
    if (!timer || !clock_reached(clock_now(), timer->due))
        return false;
    timers = timer->next;
    timer->running = false;
    timer->handler();
    return true;
}

bool kernel_step(void)
{
    struct event *event = event_take();
    if (event) {
        event->handler();
        return true;
    }
    return timer_run();
}

void power_hold(enum power_user user)
{
    board_interrupts state = board_interrupts_off();
    power_users = (uint8_t)(power_users | user);
    board_interrupts_restore(state);
}

void power_release(enum power_user user)
{
    board_interrupts state = board_interrupts_off();
    power_users &= (uint8_t)~user;
    board_interrupts_restore(state);
}

bool power_deep_allowed(void) { return power_users == 0; }

/* Sleeps until there is an event or the first timer is due. Most wakes are the crystal timer's
 * overflow, 128 a second, and end here at once. */
static void idle(void)
{
    board_interrupts state = board_interrupts_off();
    if (timers)
        board_alarm(timers->due);
    else
        board_alarm_off();
    /* An interrupt between the check and the sleep would be slept through, hence interrupts are off
     * at both. */
    while (!first_event && !board_alarm_reached())
        board_sleep(power_users == 0);
    board_interrupts_restore(state);
}

void kernel_run(void)
{
    for (;;) {
        while (kernel_step())
            board_watchdog();
        board_watchdog();
        idle();
    }
}
