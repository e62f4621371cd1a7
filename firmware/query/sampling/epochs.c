#include "query/sampling/epochs.h"

#include <stddef.h>

#include "drivers/sensor.h"
#include "drivers/settings.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "lib/calls.h"
#include "lib/wide.h"
#include "net/app.h"
#include "net/mac/time.h"
#include "query/events/events.h"
#include "query/events/raising.h"
#include "query/operators/meet.h"
#include "query/program/installer.h"
#include "query/query_conf.h"
#include "query/queueing/policy.h"
#include "query/routes/srt.h"
#include "query/sampling/acquire.h"
#include "query/sampling/budget.h"
#include "query/sampling/fast.h"

#define LATE_TICKS CLOCK_MS(LATE_MS)

static struct {
    struct timer next; /* of the epochs of all queries, the one that begins first */
} epochs;
static void update_all(void);

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
static bool start_of(const struct query_entry *entry, uint32_t epoch, struct net_time *start)
{
    uint32_t milliseconds;
    if (!entry_epoch_start(entry, epoch, &start->seconds, &milliseconds))
        return false;
    start->ticks = (uint16_t)(milliseconds * WIRE_TICKS_PER_SECOND / 1000);
    return true;
}

/* Whether the query runs in an epoch, which is not before its first; *start as start_of. */
static bool runs_in(const struct query_entry *entry, uint32_t epoch, struct net_time *start)
{
    uint32_t first;
    if (!start_of(entry, epoch, start) || start->seconds >= entry_program(entry)->end)
        return false;
    if (!events_runs(entry, start->seconds))
        return false;
    if (!(entry_program(entry)->flags & WIRE_QUERY_ONCE))
        return true;
    return epoch_from(entry_program(entry)->start, 0, entry_program(entry)->period, &first) &&
           epoch == first;
}

/* Whether the battery allows this epoch, where the query has a lifetime. It is reckoned anew in
 * epochs that it allows: in others the next one could move away by more than the query lets go by.
 */
static bool affordable(struct query_entry *entry, uint32_t now)
{
    const struct wire_budget *budget = entry_first_clause(entry, WIRE_AGGREGATE_BUDGET);
    if (budget == NULL)
        return true;
    if (entry->divisor != 0 && entry->next % entry->divisor != 0)
        return false;
    bool goes_on = entry->divisor != 0;
    entry->divisor =
        budget_divisor(budget, entry_program(entry)->period, now, entry_program(entry)->end);
    return goes_on || entry->divisor == 0 || entry->next % entry->divisor == 0;
}

/* Whether this mote itself has a part in the query, and not only motes below it. */
static bool concerned(const struct query_entry *entry)
{
    const struct wire_route *route = entry_route(entry);
    return route == NULL ||
           (settings()->root && entry_program(entry)->flags & WIRE_QUERY_AGGREGATE) ||
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
static bool take_due(struct query_entry *entry, const struct net_time *now)
{
    struct net_time start;
    if (entry_fast(entry) || (entry->state & (ENTRY_PLANNED | ENTRY_FINISHED)) != ENTRY_PLANNED ||
        !start_of(entry, entry->next, &start) || before(now, &start))
        return false;
    if (entry->state & ENTRY_HELD && entry->next % policy_every(entry) == 0)
        entry->state &= (uint8_t)~ENTRY_HELD;
    if (!late(&start, now) && events_concern(entry, start.seconds) &&
        entry->progress <= EPOCH_WAITING && concerned(entry) && affordable(entry, now->seconds)) {
        entry->epoch = entry->next;
        entry->progress = EPOCH_WAITING;
    }
    return true;
}

/* The first epoch of the entry's query from `now` on; false: beyond 32 bits. */
static bool epoch_now(const struct query_entry *entry, const struct net_time *now, uint32_t *epoch)
{
    uint32_t seconds = entry_program(entry)->start;
    uint16_t milliseconds = 0;
    if (now->seconds >= seconds) {
        seconds = now->seconds;
        milliseconds = (uint16_t)(((uint32_t)now->ticks * 1000 + WIRE_TICKS_PER_SECOND - 1) /
                                  WIRE_TICKS_PER_SECOND);
    }
    return epoch_from(seconds, milliseconds, entry_program(entry)->period, epoch);
}

/* Brings the entry, whose planned epoch was `due`, up to `now`; *wake becomes its next time to look
 * where that is earlier. */
static void update(struct query_entry *entry, const struct net_time *now, bool due, ticks_t *wake)
{
    struct net_time start = {0, 0};
    uint32_t epoch = 0;
    bool runs = epoch_now(entry, now, &epoch);
    bool fast = entry_fast(entry);
    if (fast && entry->left > 0)
        return;
    if (runs && entry->state & ENTRY_PLANNED) {
        /* The main loop was busy: epochs that have begun since are sampled late rather than not at
         * all. Or the clock has stepped back by several: none is sampled again. */
        uint16_t near = (uint16_t)(fast ? LATE_MS / (uint16_t)entry_program(entry)->period : 0);
        if (epoch - entry->next + near < 2 * (uint32_t)near)
            epoch = entry->next;
        /* Never the same epoch twice: neither the one just taken, nor, after a small step back of
         * the clock, the one before the planned one. */
        if (epoch + (due ? 0U : 1U) == entry->next)
            epoch++;
    }
    entry->next = epoch;
    entry->state |= ENTRY_PLANNED;
    bool goes_on = runs && runs_in(entry, epoch, &start);
    bool lasts = runs && start.seconds < entry_program(entry)->end;
    if (goes_on || (lasts && events_goes_on(entry, start.seconds))) {
        entry->state &= (uint8_t)~ENTRY_FINISHED;
        if (goes_on && fast) {
            bool close = start.seconds <= now->seconds + 1;
            if (close && fast_plan(entry, &start))
                return;
            start = (struct net_time){close ? start.seconds + 1 : start.seconds - 1, 0};
        }
    } else if (lasts && events_keeps(entry)) {
        entry->state &=
            (uint8_t)~ENTRY_PLANNED; /* an event's epochs are planned when it has come */
        return;
    } else {
        /* A join may go on for as long as the radio takes. */
        if (!(entry->state & ENTRY_FINISHED) || entry->progress != EPOCH_DONE ||
            meet_is_under_way(entry))
            entry->expires = now->seconds + LINGER_SECONDS;
        entry->state |= ENTRY_FINISHED;
        if (entry_first_clause(entry, WIRE_AGGREGATE_STORE) != NULL)
            return; /* its rows are read until it is dropped */
        /* over, or further away than it can be */
        if (entry->expires - now->seconds - 1 >= LINGER_SECONDS) {
            installer_free(entry);
            return;
        }
        start = (struct net_time){entry->expires, 0};
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
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        update(entry, &now, take_due(entry, &reached), &wake);
        if ((entry->state & (ENTRY_WHOLE | ENTRY_FINISHED)) == ENTRY_WHOLE && entry_fast(entry))
            held |= entry->attributes;
        any = true;
    }
    sensor_hold(held);
    fast_start();
    /* What network time has yet to reach may be the present tick here: it is looked at later. */
    if (clock_reached(local, wake))
        wake = local + 1;
    if (any)
        timer_start(&epochs.next, wake, update_all);
}

static void update_all(void)
{
    timer_stop(&epochs.next);
    if (!time_known())
        return; /* app_time_changed follows */
    plan_all();
    acquire_start();
}

void epochs_update_later(void)
{
    ticks_t due = clock_now() + CLOCK_MS(PLANNING_DELAY_MS);
    if (!epochs.next.running || !clock_reached(due, epochs.next.due))
        timer_start(&epochs.next, due, update_all);
}

void app_time_changed(void)
{
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;)
        if (entry_fast(entry))
            entry->left = 0;
    events_changed();
    event_post(&queries_changed);
}

uint32_t app_period(uint8_t query)
{
    const struct query_entry *entry = entry_of(query);
    return entry != NULL && !events_own(entry) ? entry_program(entry)->period * policy_every(entry)
                                               : UINT32_MAX;
}

/* Whether each mote sends something in each epoch of the query: a row that nothing rules out, or a
 * partial state record, which has to say of whom. */
static bool all_send(const struct query_entry *entry)
{
    const struct wire_query_program *program = entry_program(entry);
    struct program_field field;
    if (program->flags & WIRE_QUERY_AGGREGATE)
        return entry_route(entry) == NULL;
    if (program->where_length > 0)
        return false;
    for (program_start(&field); program_next_field(program, entry->length, &field);)
        switch (field.aggregate) {
        case WIRE_AGGREGATE_NONE:
        case WIRE_AGGREGATE_ACTION:
        case WIRE_AGGREGATE_SIGNAL:
        case WIRE_AGGREGATE_ON_EVENT:
        case WIRE_AGGREGATE_STOP_ON:
        case WIRE_AGGREGATE_QUEUE: break;
        default: return false;
        }
    return true;
}

enum app_epoch app_epoch_in(uint32_t second)
{
    enum app_epoch found = APP_EPOCH_NONE;
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        struct net_time start;
        uint32_t times;
        if (second < entry_program(entry)->start)
            continue;
        /* The usual periods are whole seconds: one short division tells most seconds. */
        if (entry->period_seconds != 0 && second % entry->period_seconds != 0)
            continue;
        /* Nobody else knows of its epochs, and nothing of them goes up the tree. */
        if (events_own(entry))
            continue;
        uint8_t every = policy_every(entry);
        if (epoch_from(second, 0, entry_program(entry)->period * every, &times) &&
            runs_in(entry, times * every, &start) && start.seconds == second) {
            if (all_send(entry))
                return APP_EPOCH_ALL;
            if (meet_joins(entry))
                found = APP_EPOCH_JOINED;
            else if (found == APP_EPOCH_NONE)
                found = APP_EPOCH_SOME;
        }
    }
    return found;
}
