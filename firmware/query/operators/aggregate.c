#include "query/operators/aggregate.h"

#include <string.h>

#include "drivers/settings.h"
#include "net/app.h"
#include "net/transport/queue.h"
#include "query/program/query_table.h"

struct partial {
    struct wire_partial header;
    struct wire_aggregate_state states[WIRE_FIELDS_MAXIMUM];
} __attribute__((packed));

const IN_FLASH struct aggregate *aggregate_find(uint8_t aggregate)
{
#define AGGREGATE_CASE(kind, name)                                                                 \
    case WIRE_AGGREGATE_##kind: return &aggregate_##name;
    switch (aggregate) {
        AGGREGATES(AGGREGATE_CASE)
    case WIRE_AGGREGATE_AVG: return &aggregate_sum;
    default: return aggregate_outside(aggregate);
    }
}

uint8_t aggregate_cells(const struct program_field *field)
{
    const IN_FLASH struct aggregate *aggregate = aggregate_find(field->aggregate);
    if (!aggregate)
        return 0;
    uint8_t cells = aggregate->cells != 0 ? aggregate->cells : field->format;
    return cells <= WIRE_FIELDS_MAXIMUM ? cells : 0;
}

static void start_state(const struct program_field *field, const struct eval_context *context,
                        struct wire_aggregate_state *state)
{
    int32_t reading = 0;
    /* COUNT(*) has no code: every row counts. */
    if (field->code.length == 0 || program_compute(&field->code, context, &reading))
        aggregate_find(field->aggregate)
            ->initialise(state, aggregate_cells(field), reading, settings()->nodeid);
}

static uint8_t size_of_cells(uint8_t cells)
{
    return (uint8_t)(sizeof(struct wire_partial) + cells * sizeof(struct wire_aggregate_state));
}

void aggregate_produce(const struct eval_context *context, bool passes, bool counts)
{
    const struct query_entry *entry = context->query;
    struct partial partial = {
        .header = {.query = entry->query, .epoch = context->epoch, .motes = counts}};
    struct program_field field;
    uint8_t cells = 0;
    for (program_start(&field); entry_next_column(entry, &field);
         cells = (uint8_t)(cells + aggregate_cells(&field))) {
        if (passes)
            start_state(&field, context, &partial.states[cells]);
        else if (field.aggregate == WIRE_AGGREGATE_GROUP)
            partial.states[cells].value = WIRE_NO_GROUP;
    }
    queue_push(WIRE_PACKET_PARTIAL, &partial, size_of_cells(cells));
}

bool aggregate_same_epoch(const struct wire_partial *a, const struct wire_partial *b)
{
    return memcmp(a, b, offsetof(struct wire_partial, motes)) == 0;
}

/* Whether two states of the query are of the same group: all of them are where nothing is grouped
 * by. */
static bool same_group(const struct query_entry *entry, const struct wire_partial *a,
                       const struct wire_partial *b)
{
    struct program_field field;
    uint8_t i = 0;
    for (program_start(&field); entry_next_column(entry, &field);
         i = (uint8_t)(i + aggregate_cells(&field))) {
        if (field.aggregate != WIRE_AGGREGATE_GROUP)
            continue;
        const struct wire_aggregate_state *one = &a->states[i], *other = &b->states[i];
        /* Of the groups of NULL, and of no row, the count is 0. */
        if ((one->count == 0) != (other->count == 0) || one->value != other->value)
            return false;
    }
    return true;
}

uint8_t app_state_size(uint8_t query)
{
    const struct query_entry *entry = entry_of(query);
    if (entry == NULL || !(entry_program(entry)->flags & WIRE_QUERY_AGGREGATE))
        return 0;
    struct program_field field;
    uint8_t cells = 0;
    for (program_start(&field); entry_next_column(entry, &field);)
        cells = (uint8_t)(cells + aggregate_cells(&field));
    return size_of_cells(cells);
}

bool app_merge(struct wire_partial *into, uint8_t size, const struct wire_partial *from,
               uint8_t length)
{
    struct partial whole = {.header = {.query = 0}};
    if (size < sizeof *into || size != app_state_size(from->query) || length < sizeof *from ||
        length > size ||
        (uint8_t)(length - sizeof *from) % sizeof(struct wire_aggregate_state) != 0 ||
        !aggregate_same_epoch(into, from))
        return false;
    memcpy(&whole, from, length);
    from = &whole.header;
    const struct query_entry *entry = entry_of(from->query);
    if (!same_group(entry, into, from))
        return false;

    struct program_field field;
    uint8_t i = 0, cells;
    into->motes = aggregate_counts(into->motes, from->motes);
    into->overflow |= from->overflow;
    for (program_start(&field); entry_next_column(entry, &field); i = (uint8_t)(i + cells)) {
        cells = aggregate_cells(&field);
        if (!aggregate_find(field.aggregate)->merge(&into->states[i], &from->states[i], cells))
            return false;
    }
    return true;
}

bool app_superfluous(const struct wire_partial *own, uint8_t own_length,
                     const struct wire_partial *heard, uint8_t heard_length)
{
    struct partial before = {.header = {.query = 0}}, merged;
    uint8_t size = app_state_size(heard->query);
    if (heard_length > size)
        return false;
    memcpy(&before, heard, heard_length);
    merged = before;
    if (!app_merge(&merged.header, size, own, own_length))
        return false;
    /* Counts of readings grow with each merge; where a count is an address, a smaller one stands
     * before its equal. */
    for (uint8_t i = 0; i < WIRE_FIELDS_MAXIMUM; i++) {
        const struct wire_aggregate_state *was = &before.states[i], *is = &merged.states[i];
        if (is->value != was->value || is->count < was->count ||
            (is->count != 0) != (was->count != 0))
            return false;
    }
    return true;
}
