#include "query/sampling/epochs.h"

#include <stddef.h>

#include "drivers/sensor.h"
#include "drivers/settings.h"
#include "kernel/calls.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "lib/wide.h"
#include "net/app.h"
#include "net/mac/time.h"
#include "query/events/events.h"
#include "query/program/installer.h"
#include "query/query_conf.h"
#include "query/queueing/policy.h"
#include "query/routes/srt.h"
#include "query/sampling/acquire.h"
#include "query/sampling/budget.h"
#include "query/sampling/fast.h"

/* Longest sleep between looks at network time, in s: clocks 60 ppm apart move less than 2 ms in it,
 * and time_local and timers stay within their bounds. */
#define LOOK_SECONDS 30
/* An epoch that began this long ago is still sampled: a step of the clock or a busy mote made it
 * late. */
#define LATE_MS 500
#define LATE_TICKS CLOCK_MS(LATE_MS)
/* A finished query is kept this long, in s, so that its last partial state records are merged. */
#define LINGER_SECONDS 10

static struct timer timer;
static void update_all(void);

/* In which a flood that brought a query is passed on. */
#define LATER_TICKS CLOCK_MS(20)

struct event queries_changed = {.handler = update_all};

static bool before(const struct net_time *a, const struct net_time *b)
{
    return a->seconds < b->seconds || (a->seconds == b->seconds && a->ticks < b->ticks);
}

/* First epoch that starts so late or later, of those of so many ms; false: beyond 32 bits. */
static bool epoch_from(uint32_t seconds, uint16_t milliseconds, uint32_t period, uint32_t *epoch)
{
    uint32_t rest;
    bool fits = wide_divide((uint64_t)seconds * 1000 + milliseconds, period, epoch, &rest);
    if (fits && rest > 0)
        ++*epoch;
    return fits;
}

/* Network time at which an epoch starts; false: beyond 32 bits. */
static bool start_of(const struct slot *slot, uint32_t epoch, struct net_time *start)
{
    uint32_t milliseconds;
    if (!slot_epoch_start(slot, epoch, &start->seconds, &milliseconds))
        return false;
    start->ticks = (uint16_t)(milliseconds * WIRE_TICKS_PER_SECOND / 1000);
    return true;
}

/* Whether the query runs in an epoch, which is not before its first; *start as start_of. */
static bool runs_in(const struct slot *slot, uint32_t epoch, struct net_time *start)
{
    uint32_t first;
    if (!start_of(slot, epoch, start) || start->seconds >= slot_program(slot)->end)
        return false;
    if (!events_runs(slot, start->seconds))
        return false;
    if (!(slot_program(slot)->flags & WIRE_QUERY_ONCE))
        return true;
    return epoch_from(slot_program(slot)->start, 0, slot_program(slot)->period, &first) &&
           epoch == first;
}

/* Whether the battery allows this epoch, where the query has a lifetime. It is reckoned anew in
 * epochs that it allows: in others the next one could move away by more than the query lets go by.
 */
static bool affordable(struct slot *slot, uint32_t now)
{
    const struct wire_budget *budget = slot_first_clause(slot, WIRE_AGGREGATE_BUDGET);
    if (budget == NULL)
        return true;
    if (slot->divisor != 0 && slot->next % slot->divisor != 0)
        return false;
    bool goes_on = slot->divisor != 0;
    slot->divisor =
        budget_divisor(budget, slot_program(slot)->period, now, slot_program(slot)->end);
    return goes_on || slot->divisor == 0 || slot->next % slot->divisor == 0;
}

/* Whether this mote itself has a part in the query, and not only motes below it. */
static bool concerned(const struct slot *slot)
{
    const struct wire_route *route = slot_route(slot);
    return route == NULL ||
           (settings()->root && slot_program(slot)->flags & WIRE_QUERY_AGGREGATE) ||
           srt_samples(route);
}

/* Whether a start that has come is too long ago. */
static bool late(const struct net_time *start, const struct net_time *now)
{
    uint32_t seconds = now->seconds - start->seconds;
    return seconds > 1 || (uint16_t)((uint16_t)seconds * WIRE_TICKS_PER_SECOND + now->ticks -
                                     start->ticks) > LATE_TICKS;
}

/* Takes the planned epoch where it is due, unless the one before it is still being sampled. `now`
 * may be EPOCHS_EARLY_TICKS ahead. */
static bool take_due(struct slot *slot, const struct net_time *now)
{
    struct net_time start;
    if (slot_fast(slot) || (slot->state & (SLOT_PLANNED | SLOT_FINISHED)) != SLOT_PLANNED ||
        !start_of(slot, slot->next, &start) || before(now, &start))
        return false;
    if (slot->state & SLOT_HELD && slot->next % policy_every(slot) == 0)
        slot->state &= (uint8_t)~SLOT_HELD;
    if (!late(&start, now) && events_concern(slot, start.seconds) &&
        !(slot->state & (SLOT_SAMPLING | SLOT_SCANNING)) && concerned(slot) &&
        affordable(slot, now->seconds)) {
        slot->epoch = slot->next;
        slot->state |= SLOT_WAITING;
    }
    return true;
}

/* The first epoch of the slot's query from `now` on; false: beyond 32 bits. */
static bool epoch_now(const struct slot *slot, const struct net_time *now, uint32_t *epoch)
{
    uint32_t seconds = slot_program(slot)->start;
    uint16_t milliseconds = 0;
    if (now->seconds >= seconds) {
        seconds = now->seconds;
        milliseconds = (uint16_t)(((uint32_t)now->ticks * 1000 + WIRE_TICKS_PER_SECOND - 1) /
                                  WIRE_TICKS_PER_SECOND);
    }
    return epoch_from(seconds, milliseconds, slot_program(slot)->period, epoch);
}

/* Brings the slot, whose planned epoch was `due`, up to `now`; *wake becomes its next time to look
 * where that is earlier. */
static void update(struct slot *slot, const struct net_time *now, bool due, ticks_t *wake)
{
    struct net_time start = {0, 0};
    uint32_t epoch = 0;
    bool runs = epoch_now(slot, now, &epoch);
    bool fast = slot_fast(slot);
    if (fast && slot->left > 0)
        return;
    if (runs && slot->state & SLOT_PLANNED) {
        /* The main loop was busy: epochs that have begun since are sampled late rather than not at
         * all. Or the clock has stepped back by several: none is sampled again. */
        uint16_t near = (uint16_t)(fast ? LATE_MS / (uint16_t)slot_program(slot)->period : 0);
        if (epoch - slot->next + near < 2 * (uint32_t)near)
            epoch = slot->next;
        /* Never the same epoch twice: neither the one just taken, nor, after a small step back of
         * the clock, the one before the planned one. */
        if (epoch + (due ? 0U : 1U) == slot->next)
            epoch++;
    }
    slot->next = epoch;
    slot->state |= SLOT_PLANNED;
    bool goes_on = runs && runs_in(slot, epoch, &start);
    bool lasts = runs && start.seconds < slot_program(slot)->end;
    if (goes_on || (lasts && events_goes_on(slot, start.seconds))) {
        slot->state &= (uint8_t)~SLOT_FINISHED;
        if (goes_on && fast) {
            bool close = start.seconds <= now->seconds + 1;
            if (close && fast_plan(slot, &start))
                return;
            start = (struct net_time){close ? start.seconds + 1 : start.seconds - 1, 0};
        }
    } else if (lasts && events_keeps(slot)) {
        slot->state &= (uint8_t)~SLOT_PLANNED; /* an event's epochs are planned when it has come */
        return;
    } else {
        /* A join may go on for as long as the radio takes. */
        if (!(slot->state & SLOT_FINISHED) ||
            slot->state & (SLOT_WAITING | SLOT_SAMPLING | SLOT_SCANNING))
            slot->expires = now->seconds + LINGER_SECONDS;
        slot->state |= SLOT_FINISHED;
        if (slot_first_clause(slot, WIRE_AGGREGATE_STORE) != NULL)
            return; /* its rows are read until it is dropped */
        /* over, or further away than it can be */
        if (slot->expires - now->seconds - 1 >= LINGER_SECONDS) {
            installer_free(slot);
            return;
        }
        start = (struct net_time){slot->expires, 0};
    }
    if (start.seconds > now->seconds + LOOK_SECONDS)
        return;
    ticks_t local = time_local(start);
    if (clock_reached(*wake, local))
        *wake = local;
}

static NOT_INLINED void plan_all(void)
{
    ticks_t local = clock_now();
    struct net_time now = time_at(local), reached = time_at(local + EPOCHS_EARLY_TICKS);
    ticks_t wake = local + LOOK_SECONDS * CLOCK_TICKS_PER_SECOND;
    uint32_t held = 0; /* sensors that queries read again sooner than they warm up stay on */
    bool any = false;
    for (struct slot *slot = NULL; (slot = slot_next(slot)) != NULL;) {
        update(slot, &now, take_due(slot, &reached), &wake);
        if ((slot->state & (SLOT_WHOLE | SLOT_FINISHED)) == SLOT_WHOLE && slot_fast(slot))
            held |= slot->attributes;
        any = true;
    }
    sensor_hold(held);
    fast_start();
    if (any)
        timer_start(&timer, wake, update_all);
}

static void update_all(void)
{
    timer_stop(&timer);
    if (!time_known())
        return; /* app_time_changed follows */
    plan_all();
    acquire_start();
}

void epochs_update_later(void)
{
    ticks_t due = clock_now() + LATER_TICKS;
    if (!timer.running || !clock_reached(due, timer.due))
        timer_start(&timer, due, update_all);
}

void app_time_changed(void)
{
    for (struct slot *slot = NULL; (slot = slot_next(slot)) != NULL;)
        if (slot_fast(slot))
            slot->left = 0;
    events_changed();
    event_post(&queries_changed);
}

uint32_t app_period(uint8_t query)
{
    const struct slot *slot = slot_of(query);
    return slot != NULL ? slot_program(slot)->period * policy_every(slot) : UINT32_MAX;
}

bool app_epoch_in(uint32_t second)
{
    for (const struct slot *slot = NULL; (slot = slot_next(slot)) != NULL;) {
        struct net_time start;
        uint32_t times;
        if (second < slot_program(slot)->start)
            continue;
        /* The usual periods are whole seconds: one short division tells most seconds. */
        if (slot->period_seconds != 0 && second % slot->period_seconds != 0)
            continue;
        uint8_t every = policy_every(slot);
        if (epoch_from(second, 0, slot_program(slot)->period * every, &times) &&
            runs_in(slot, times * every, &start) && start.seconds == second)
            return true;
    }
    return false;
}
