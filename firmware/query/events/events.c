#include "query/events/events.h"

#include <string.h>

#include "drivers/settings.h"
#include "lib/calls.h"
#include "net/app.h"
#include "net/mac/time.h"
#include "net/transport/queue.h"
#include "query/events/numbered.h"
#include "query/expressions/attribute.h"
#include "query/expressions/vm.h"
#include "query/program/clauses.h"

#define ONLY_TIMED (WIRE_EVENT_FLAG_TIMER | WIRE_EVENT_FLAG_ALIGNED)

/* An event of one mote, and the network second from which it runs the query; 0: none. */
struct run {
    uint32_t begun;
    struct wire_event event;
} __attribute__((packed));

static const struct wire_on_event *on_event(const struct program_field *field)
{
    return (const struct wire_on_event *)field->code.bytes;
}

static bool on_event_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_on_event *on = on_event(field);
    uint8_t length = field->code.length;
    return length >= sizeof *on && on->lasts > 0 && on->group < 8 &&
           !((on->flags & ONLY_TIMED) && on->step == 0) &&
           (length == sizeof *on || vm_check(field->code.bytes + sizeof *on,
                                             (uint8_t)(length - sizeof *on), &facts->attributes));
}

/* Whether an event that came about in network second `seconds` is one for a query. News of a start
 * waits until the mote has learnt its queries, and is none for those that have been asked since. */
static bool is_for(const struct query_entry *entry, uint16_t number, uint32_t seconds)
{
    return number != WIRE_EVENT_BOOT || seconds >= entry_program(entry)->start;
}

bool events_own(const struct query_entry *entry)
{
    const struct wire_on_event *on = entry_first_clause(entry, WIRE_AGGREGATE_ON_EVENT);
    return on != NULL && on->flags & WIRE_EVENT_FLAG_OWN;
}

bool events_shared(uint16_t number)
{
    struct program_field field;
    bool own = false;
    for (const struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;)
        for (program_start(&field);
             program_next_field(entry_program(entry), entry->length, &field);) {
            bool starts = field.aggregate == WIRE_AGGREGATE_ON_EVENT;
            if ((!starts && field.aggregate != WIRE_AGGREGATE_STOP_ON) ||
                event_of(&field) != number)
                continue;
            if (!starts || !(on_event(&field)->flags & WIRE_EVENT_FLAG_OWN))
                return true;
            own = true;
        }
    return !own;
}

bool events_awaited(uint16_t number, uint32_t seconds)
{
    struct program_field field;
    for (const struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        if (!is_for(entry, number, seconds))
            continue;
        for (uint8_t n = 0; entry_clause(entry, WIRE_AGGREGATE_ON_EVENT, n, &field); n++)
            if (event_of(&field) == number && !(on_event(&field)->flags & WIRE_EVENT_FLAG_TIMER))
                return true;
        for (uint8_t n = 0; entry_clause(entry, WIRE_AGGREGATE_STOP_ON, n, &field); n++)
            if (event_of(&field) == number)
                return true;
    }
    return false;
}

static uint8_t run_count(const struct query_entry *entry)
{
    const struct wire_on_event *on = entry_first_clause(entry, WIRE_AGGREGATE_ON_EVENT);
    if (on == NULL || on->flags & WIRE_EVENT_FLAG_TIMER)
        return 0;
    return on->flags & WIRE_EVENT_FLAG_EACH ? WIRE_EVENT_RUNS : 1;
}

static uint16_t runs_size(const struct query_entry *entry, const struct program_field *field)
{
    (void)field;
    return run_count(entry) * sizeof(struct run);
}

static void runs_open(struct query_entry *entry, const struct program_field *field)
{
    (void)field;
    if (run_count(entry) > 1)
        entry->state |= ENTRY_EACH;
}

/* The runs of an entry, *count of them. */
static struct run *runs_of(const struct query_entry *entry, uint8_t *count)
{
    *count = run_count(entry);
    return *count > 0 ? (struct run *)clauses_state(entry, WIRE_AGGREGATE_ON_EVENT) : NULL;
}

const struct wire_event *events_event(const struct query_entry *entry)
{
    uint8_t count;
    const struct run *run = runs_of(entry, &count);
    return count > 0 && run->begun != 0 ? &run->event : NULL;
}

/* Whether an epoch from network second `start` on is one of those that the run's event lets begin.
 */
static bool within(const struct wire_on_event *on, const struct run *run, uint32_t start)
{
    uint32_t from = on->flags & WIRE_EVENT_FLAG_HEARD ? run->begun : run->event.seconds;
    return run->begun != 0 && start >= run->begun && start - run->begun < on->lasts &&
           (!(on->flags & WIRE_EVENT_FLAG_ALIGNED) || (start - from) % on->step == 0);
}

bool events_concern(const struct query_entry *entry, uint32_t start)
{
    uint8_t count;
    const struct run *run = runs_of(entry, &count);
    if (!events_runs(entry, start))
        return false;
    if (count == 0)
        return true;
    const struct wire_on_event *on = entry_first_clause(entry, WIRE_AGGREGATE_ON_EVENT);
    for (; count > 0; count--, run++)
        if (within(on, run, start))
            return true;
    return false;
}

bool events_next(struct eval_context *context, uint8_t *run)
{
    uint32_t start = 0, milliseconds;
    uint8_t count;
    const struct query_entry *entry = context->query;
    const struct run *all = runs_of(entry, &count);
    if (count <= 1)
        return (*run)++ == 0;
    entry_epoch_start(entry, context->epoch, &start, &milliseconds);
    const struct wire_on_event *on = entry_first_clause(entry, WIRE_AGGREGATE_ON_EVENT);
    for (; *run < count; ++*run)
        if (within(on, &all[*run], start)) {
            context->event = &all[(*run)++].event;
            return true;
        }
    return false;
}

/* Whether an epoch from network second `start` on is one of those that the clause speaks of. Those
 * of motes that an event is not about are among them, as rows of others go by; but for ALIGNED,
 * whose epochs are each event's own. */
static bool runs(const struct query_entry *entry, const struct wire_on_event *on, uint32_t start)
{
    uint8_t count;
    if (on->flags & WIRE_EVENT_FLAG_TIMER)
        return start % on->step < on->lasts;
    if (!(on->flags & WIRE_EVENT_FLAG_ALIGNED) && entry->begun != 0 && start >= entry->begun &&
        start - entry->begun < on->lasts)
        return true;
    for (const struct run *run = runs_of(entry, &count); count > 0; count--, run++)
        if (within(on, run, start))
            return true;
    return false;
}

bool events_runs(const struct query_entry *entry, uint32_t start)
{
    struct program_field field;
    if (entry->stopped != 0 && start >= entry->stopped)
        return false;
    uint8_t n = 0;
    for (; entry_clause(entry, WIRE_AGGREGATE_ON_EVENT, n, &field); n++)
        if (runs(entry, on_event(&field), start))
            return true;
    return n == 0;
}

bool events_keeps(const struct query_entry *entry)
{
    return entry->stopped != 0 || entry_first_clause(entry, WIRE_AGGREGATE_ON_EVENT) != NULL;
}

bool events_goes_on(const struct query_entry *entry, uint32_t start)
{
    struct program_field field;
    if (entry->stopped != 0 && start >= entry->stopped)
        return false;
    for (uint8_t n = 0; entry_clause(entry, WIRE_AGGREGATE_ON_EVENT, n, &field); n++) {
        const struct wire_on_event *on = on_event(&field);
        if (on->flags & WIRE_EVENT_FLAG_TIMER)
            return true;
        if (on->flags & WIRE_EVENT_FLAG_ALIGNED && entry->begun != 0 &&
            start < entry->begun + on->lasts)
            return true;
    }
    return false;
}

/* Whether all events of the group have come. */
static bool complete(const struct query_entry *entry, uint8_t group)
{
    struct program_field field;
    for (uint8_t n = 0; entry_clause(entry, WIRE_AGGREGATE_ON_EVENT, n, &field); n++)
        if (on_event(&field)->group == group && !(entry->come >> n & 1))
            return false;
    return true;
}

/* What stays as it is while an event's query runs; all else is unknown yet. */
static bool read_settled(uint8_t attribute, int32_t *value, const struct eval_context *context)
{
    switch (attribute) {
    case WIRE_ATTRIBUTE_NODEID:
    case WIRE_ATTRIBUTE_XPOS:
    case WIRE_ATTRIBUTE_YPOS:
    case WIRE_ATTRIBUTE_EVENT_NODEID:
    case WIRE_ATTRIBUTE_EVENT_XPOS:
    case WIRE_ATTRIBUTE_EVENT_YPOS:
    case WIRE_ATTRIBUTE_EVENT_NETWORK_TIME:
    case WIRE_ATTRIBUTE_EVENT_VALUE: return attribute_read(attribute, value, context);
    default: return false;
    }
}

static const IN_FLASH struct vm_readers settled_readers = {.attribute = read_settled};

/* Whether no row of this mote can pass for an event: a condition is false whatever is unknown. IS
 * NULL takes what is unknown for known: where it stands, or seems to, nothing is said. */
static bool elsewhere(struct query_entry *entry, const struct wire_event *event)
{
    struct eval_context context = entry_context(entry);
    struct program_code code;
    int32_t value;
    bool none = false;
    context.readers = &settled_readers;
    context.event = event;
    for (uint8_t i = 0; !none && program_condition(entry_program(entry), i, &code); i++)
        none = memchr(code.bytes, WIRE_OP_IS_NULL, code.length) == NULL &&
               program_compute(&code, &context, &value) && value == 0;
    return none;
}

/* The event runs the entry from now on, beside those of other motes; where there are too many, in
 * place of the one that ends first. */
static void keep(struct query_entry *entry, const struct wire_on_event *on,
                 const struct wire_event *event, uint32_t now)
{
    uint8_t count;
    struct run *run = runs_of(entry, &count), *oldest = run;
    /* None where another clause is a timer. ALIGNED: others' rows come at epochs that only the
     * event tells. */
    if (count == 0 ||
        (count > 1 && !(on->flags & WIRE_EVENT_FLAG_ALIGNED) && elsewhere(entry, event)))
        return;
    for (; count > 0; count--, run++) {
        if (run->begun != 0 && run->event.node == event->node) {
            oldest = run;
            break;
        }
        if (run->begun < oldest->begun)
            oldest = run;
    }
    *oldest = (struct run){now, *event};
}

/* Whether the condition behind so many bytes of a clause is true of an event; there may be none. */
static bool holds(struct query_entry *entry, const struct program_field *field, uint8_t before,
                  const struct wire_event *event)
{
    struct program_code code = {field->code.bytes + before, (uint8_t)(field->code.length - before)};
    struct eval_context context = entry_context(entry);
    int32_t value;
    context.event = event;
    return code.length == 0 || (program_compute(&code, &context, &value) && value != 0);
}

static bool is_before(const struct wire_event *one, const struct wire_event *other)
{
    return one->seconds != other->seconds ? one->seconds < other->seconds : one->node < other->node;
}

/* Whether an event changes nothing while another one runs the entry. What comes about within some
 * seconds is heard of in any order; motes that have to agree keep the latest all the same or, where
 * the query is not to overlap, the first. */
static bool stays(const struct query_entry *entry, uint8_t flags, const struct wire_event *event)
{
    const struct wire_event *runs = events_event(entry);
    bool first = flags & WIRE_EVENT_FLAG_NO_OVERLAP;
    if (!(flags & WIRE_EVENT_FLAG_HEARD) || runs == NULL)
        return first;
    return first ? !is_before(event, runs) : !is_before(runs, event);
}

/* An event of this mote has come that runs the entry in a second of its own, which names its row:
 * so many steps behind the one before it, in which that is sampled. One too many is lost. */
static NOT_INLINED void start_own(struct query_entry *entry, const struct wire_on_event *on,
                                  const struct wire_event *event, uint32_t now)
{
    uint8_t count;
    struct run *run = runs_of(entry, &count), *oldest = run;
    for (; count > 0; count--, run++)
        if (run->begun < oldest->begun)
            oldest = run;
    if (oldest == NULL || (oldest->begun != 0 && oldest->begun + on->step > now)) {
        queue_lost();
        return;
    }
    if (entry->begun == 0 || entry->begun + on->step <= now)
        entry->begun = now;
    else
        entry->begun += on->step;
    *oldest = (struct run){entry->begun, *event};
}

/* The n-th of its events has come. News travels for some seconds: each mote runs the query for its
 * whole time from when it heard. True: it runs from now on. */
static bool start(struct query_entry *entry, const struct wire_on_event *on, uint8_t n,
                  const struct wire_event *event, uint32_t now)
{
    if (on->flags & WIRE_EVENT_FLAG_OWN) {
        if (event->node == settings()->nodeid)
            start_own(entry, on, event, now);
        return false;
    }
    bool running = entry->begun != 0 && now - entry->begun < on->lasts;
    if (on->flags & WIRE_EVENT_FLAG_TIMER || (running && stays(entry, on->flags, event)))
        return false;
    entry->come = (uint8_t)(entry->come | 1U << n);
    if (!complete(entry, on->group))
        return false;
    entry->come = 0;
    entry->begun = now;
    keep(entry, on, event, now);
    return true;
}

/* What an entry does about an event of whose clauses the conditions are true. */
static void take(struct query_entry *entry, const struct wire_event *event, uint32_t now)
{
    struct program_field field;
    uint8_t n = 0;
    bool begins = false;
    for (program_start(&field); program_next_field(entry_program(entry), entry->length, &field);) {
        bool starts = field.aggregate == WIRE_AGGREGATE_ON_EVENT;
        if (!starts && field.aggregate != WIRE_AGGREGATE_STOP_ON)
            continue;
        uint8_t before = starts ? sizeof(struct wire_on_event) : sizeof event->event;
        if (event_of(&field) == event->event && holds(entry, &field, before, event)) {
            if (!starts)
                entry->stopped = now;
            else if (!begins)
                begins = start(entry, on_event(&field), n, event, now);
        }
        n = (uint8_t)(n + starts);
    }
}

/* The first whole one from now on; 0, which stands for never: it is not known. */
static NOT_INLINED uint32_t next_second(void)
{
    struct net_time now = time_at(clock_now());
    return time_known() ? now.seconds + (now.ticks > 0) : 0;
}

void app_event(const struct wire_event *event)
{
    uint32_t next = next_second();
    if (next == 0)
        return;
    for (struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        if (!is_for(entry, event->event, event->seconds))
            continue;
        take(entry, event, next);
    }
    event_post(&queries_changed);
}

const IN_FLASH struct clause clause_on_event = {
    WIRE_AGGREGATE_ON_EVENT, on_event_check, NULL, runs_size, runs_open, NULL};
const IN_FLASH struct clause clause_stop_on = {
    WIRE_AGGREGATE_STOP_ON, numbered_check, NULL, NULL, NULL, NULL};
