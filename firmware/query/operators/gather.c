#include "query/operators/gather.h"

#include <stddef.h>

#include "drivers/settings.h"
#include "lib/calls.h"
#include "lib/wide.h"
#include "net/app.h"
#include "query/events/events.h"
#include "query/expressions/attribute.h"
#include "query/operators/gather_answer.h"
#include "query/operators/gathered.h"
#include "query/operators/output.h"
#include "query/operators/row.h"
#include "query/program/clauses.h"

/* The clause's state, of the mote that gathers. */
struct gathering {
    uint32_t begun; /* the query's epoch in which it asked last … */
    uint32_t name;  /* … and what answers to that are called */
    uint32_t heard; /* bit i: the part's owner i has answered */
    bool open;      /* its row has not been made yet */
    struct gather_cell cells[WIRE_GATHERED_MAXIMUM];
} __attribute__((packed));

static const struct wire_gather *gather_of(const struct query_entry *entry)
{
    return entry_first_clause(entry, WIRE_AGGREGATE_GATHER);
}

bool gathers(const struct query_entry *entry) { return gather_of(entry) != NULL; }

static bool is_here(const struct wire_gather *gather) { return gather->mote == settings()->nodeid; }

static struct gathering *state_of(const struct query_entry *entry)
{
    return (struct gathering *)clauses_state(entry, WIRE_AGGREGATE_GATHER);
}

/* ---- the clause ---- */

/* Its columns and conditions read what is gathered as the rows of a storage point. */
static bool gather_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_gather *gather = (const struct wire_gather *)field->code.bytes;
    facts->keeps |= PROGRAM_KEEPS_JOIN;
    return ++facts->sources == 1 && field->code.length >= sizeof *gather &&
           gather->aggregates > 0 && gather->aggregates <= WIRE_GATHERED_MAXIMUM &&
           !(facts->program->flags & (WIRE_QUERY_AGGREGATE | WIRE_QUERY_ONCE)) &&
           facts->program->period >= WIRE_PERIOD_MINIMUM_MS;
}

static uint16_t gather_size(const struct query_entry *entry, const struct program_field *field)
{
    (void)entry;
    return is_here((const struct wire_gather *)field->code.bytes) ? sizeof(struct gathering) : 0;
}

/* Only the mote that gathers senses something for it. */
static void gather_open(struct query_entry *entry, const struct program_field *field)
{
    if (!is_here((const struct wire_gather *)field->code.bytes))
        entry->attributes = 0;
}

const IN_FLASH struct clause clause_gather = {WIRE_AGGREGATE_GATHER, gather_check, NULL,
                                              gather_size,           gather_open,  NULL};

/* ---- the row ---- */

/* A value of an aggregate, or the number of the row, which is the only one. */
static bool read_gathered(uint8_t operand, int32_t *value, const struct eval_context *context)
{
    const struct wire_gather *gather = gather_of(context->query);
    *value = 0;
    if (operand == WIRE_STORED_NUMBER)
        return true;
    if (operand >= gather->aggregates)
        return false;
    const struct gather_cell *cell = &state_of(context->query)->cells[operand];
    switch (((const struct wire_gathered_kind *)gather->more)[operand].aggregate) {
    case WIRE_AGGREGATE_COUNT: *value = (int32_t)(cell->count & INT32_MAX); return true;
    case WIRE_AGGREGATE_AVG: return wide_quotient(cell->value, 0, cell->count, value);
    default: return cell->count > 0 && wide_quotient(cell->value, 0, 1, value);
    }
}

static const IN_FLASH struct vm_readers gathered_readers = {attribute_read, row_changes,
                                                            read_gathered};

/* What was asked is over: its row of what has come, where the conditions let it pass. Where another
 * event has come meanwhile it is asked anew. */
static NOT_INLINED void finish(struct query_entry *entry)
{
    struct gathering *state = state_of(entry);
    struct eval_context context = row_context(entry);
    if (!state->open)
        return;
    state->open = false;
    if (state->begun < entry->begun)
        return;
    context.readers = &gathered_readers;
    context.epoch = state->name;
    output_gathered(&context, program_passes(entry_program(entry), &context));
}

/* ---- asking ---- */

/* ON_EVENT, where an event asks; else NULL. */
static const struct wire_on_event *event_of(const struct query_entry *entry)
{
    const struct wire_on_event *on = entry_first_clause(entry, WIRE_AGGREGATE_ON_EVENT);
    return on != NULL && on->flags & WIRE_EVENT_FLAG_HEARD ? on : NULL;
}

/* What answers of the entry's epoch are called: by the epoch or, where an event asks, by its second
 * and those since then, as each mote counts from when it has heard. */
static uint32_t name_of(const struct query_entry *entry)
{
    const struct wire_event *event = event_of(entry) != NULL ? events_event(entry) : NULL;
    return event != NULL ? event->seconds + (entry->epoch - entry->begun) : entry->epoch;
}

/* Whether another epoch follows, in which the row is made if not before: the last asks nothing. */
static bool is_asked(const struct query_entry *entry)
{
    const struct wire_on_event *on = event_of(entry);
    uint32_t seconds, milliseconds;
    return entry_epoch_start(entry, entry->epoch + (on != NULL ? on->step : 1), &seconds,
                             &milliseconds) &&
           seconds < entry_program(entry)->end && events_concern(entry, seconds);
}

/* Whether it can be answered, by what this mote knows. */
static NOT_INLINED bool is_known(const struct query_entry *entry)
{
    struct gather_question question;
    return gather_read(entry, &question);
}

/* The epoch has begun, unless it was asked in it already. */
static NOT_INLINED void ask(const struct query_entry *entry)
{
    uint32_t name = name_of(entry);
    if (is_here(gather_of(entry))) {
        struct gathering *state = state_of(entry);
        if (state->begun == entry->epoch)
            return;
        *state = (struct gathering){.begun = entry->epoch, .name = name, .open = is_known(entry)};
    }
    gather_answer(entry, name);
}

/* What goes deep, a row as well as what brings the last answer, goes so one after the other. */
void gather_start(struct query_entry *entry)
{
    entry->progress = EPOCH_DONE;
    if (is_here(gather_of(entry)))
        finish(entry);
    if (is_asked(entry))
        ask(entry);
    else
        gather_answer_leave(entry);
}

/* A mote's place among a part's owners; owner_count: it is none. */
static uint8_t owner_place(const struct indexed_part *part, uint16_t node)
{
    uint8_t place = 0;
    while (place < part->owner_count && part->owners[place].node != node)
        place++;
    return place;
}

static bool is_whole(const struct gathering *state, uint8_t zones)
{
    for (uint32_t heard = state->heard; heard != 0 && zones > 0; heard &= heard - 1)
        zones--;
    return zones == 0;
}

bool app_gathered(const uint8_t *bytes, uint8_t length)
{
    const struct wire_gathered *record = (const struct wire_gathered *)bytes;
    struct query_entry *entry = length > sizeof *record ? entry_of(record->query) : NULL;
    struct gather_question question;
    if (entry == NULL || !gather_read(entry, &question) || !is_here(question.gather))
        return false;
    uint8_t count = question.gather->aggregates;
    uint8_t place = owner_place(&question.part, record->node);
    if (length != sizeof *record + count * sizeof(struct wire_gathered_state) ||
        place == question.part.owner_count)
        return false;
    struct gathering *state = state_of(entry);
    if (!state->open || record->epoch != state->name || state->heard >> place & 1)
        return true; /* it comes late, or again */
    state->heard |= (uint32_t)1 << place;
    const struct wire_gathered_state *states = (const struct wire_gathered_state *)record->states;
    for (uint8_t i = 0; i < count; i++)
        gather_add(&state->cells[i], question.kinds[i].aggregate,
                   (int64_t)((uint64_t)states[i].high << 32 | states[i].low), states[i].count);
    if (is_whole(state, question.gather->zones) && entry->progress == EPOCH_DONE) {
        entry->progress = EPOCH_WAITING;
        event_post(&queries_changed);
    }
    return true;
}
