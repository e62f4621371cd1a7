#include "query/queueing/policy.h"

#include <stddef.h>
#include <string.h>

#include "lib/wide.h"
#include "query/program/clauses.h"
#include "query/program/query_table.h"
#include "query/program/row_layout.h"

static const struct wire_queue *clause_of(const struct query_entry *entry)
{
    return entry_first_clause(entry, WIRE_AGGREGATE_QUEUE);
}

const struct wire_queue *policy_of(uint8_t query)
{
    const struct query_entry *entry = entry_of(query);
    return entry != NULL ? clause_of(entry) : NULL;
}

uint8_t policy_every(const struct query_entry *entry)
{
    const struct wire_queue *clause = clause_of(entry);
    return clause != NULL && clause->every != 0 ? clause->every : 1;
}

uint16_t policy_left_out(uint8_t query, uint16_t rows)
{
    struct query_entry *entry = entry_of(query);
    if (entry == NULL)
        return 0;
    uint16_t before = entry->left_out;
    entry->left_out = rows;
    return before;
}

bool policy_may_go(uint8_t query)
{
    const struct query_entry *entry = entry_of(query);
    /* Behind the last epoch of an event none would let the others go. */
    return entry == NULL ||
           (entry->state & (ENTRY_HELD | ENTRY_PLANNED)) != (ENTRY_HELD | ENTRY_PLANNED);
}

void policy_gone(uint8_t query)
{
    struct query_entry *entry = entry_of(query);
    if (entry != NULL && policy_every(entry) > 1)
        entry->state |= ENTRY_HELD;
}

uint16_t policy_difference(const struct wire_result *a, const struct wire_result *b)
{
    struct row_column column;
    uint32_t total = 0;
    for (row_start(&column, entry_of(a->query)); row_next_column(&column);) {
        uint32_t apart = wide_distance(row_unpack(&a->values[column.offset], column.field.format),
                                       row_unpack(&b->values[column.offset], column.field.format));
        total += apart > UINT16_MAX || (a->nulls ^ b->nulls) & column.bit ? UINT16_MAX : apart;
    }
    return total > UINT16_MAX ? UINT16_MAX : (uint16_t)total;
}

void policy_average(struct wire_result *into, uint16_t weight, const struct wire_result *from,
                    uint16_t rest)
{
    struct row_column column;
    for (row_start(&column, entry_of(into->query)); row_next_column(&column);) {
        uint8_t *bytes = &into->values[column.offset];
        if (from->nulls & column.bit)
            continue;
        int32_t value = row_unpack(&from->values[column.offset], column.field.format);
        if (!(into->nulls & column.bit))
            value = wide_between(row_unpack(bytes, column.field.format), value, rest,
                                 (uint32_t)weight + rest);
        memcpy(bytes, &value, column.size); /* little-endian, as wire.h makes sure */
    }
    into->nulls &= from->nulls;
}

static bool queue_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_queue *clause = (const struct wire_queue *)field->code.bytes;
    return !(facts->program->flags & WIRE_QUERY_AGGREGATE) &&
           field->code.length == sizeof *clause && clause->policy <= WIRE_QUEUE_DELTA &&
           clause->every <= WIRE_PERIOD_MAXIMUM_MS / facts->program->period;
}

/* Its rows are chosen one by one: none waits in a series, and the first waits for an epoch in which
 * one may go. */
static void queue_open(struct query_entry *entry, const struct program_field *field)
{
    uint8_t every = policy_every(entry);
    (void)field;
    entry->state &= (uint8_t)~ENTRY_FAST;
    entry_rows_each(entry, entry_program(entry)->period * every);
    if (every > 1)
        entry->state |= ENTRY_HELD;
}

static void queue_close(const struct query_entry *entry) { discipline_query_ended(entry->query); }

const IN_FLASH struct clause clause_queue = {WIRE_AGGREGATE_QUEUE, queue_check, NULL, NULL,
                                             queue_open,           queue_close};
