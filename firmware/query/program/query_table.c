#include "query/program/query_table.h"

#include <stddef.h>
#include <string.h>

#include "lib/wide.h"

static struct query_entry table[WIRE_QUERIES_MAXIMUM];
void query_table_init(void)
{
    memset(table, 0, sizeof table);
    memory_init();
}

struct query_entry *entry_at(uint8_t index)
{
    return table[index].state & ENTRY_WHOLE ? &table[index] : NULL;
}

struct query_entry *entry_next(const struct query_entry *entry)
{
    for (struct query_entry *next = entry != NULL ? (struct query_entry *)entry + 1 : table;
         next < table + WIRE_QUERIES_MAXIMUM; next++)
        if (next->state & ENTRY_WHOLE)
            return next;
    return NULL;
}

uint8_t entry_bit(const struct query_entry *entry)
{
    uint8_t bit = 1;
    while (entry-- != table)
        bit = (uint8_t)(bit << 1);
    return bit;
}

bool entry_next_column(const struct query_entry *entry, struct program_field *field)
{
    while (program_next_field(entry_program(entry), entry->length, field))
        if (field->aggregate < WIRE_AGGREGATE_BUDGET)
            return true;
    return false;
}

bool entry_clause(const struct query_entry *entry, uint8_t kind, uint8_t n,
                  struct program_field *field)
{
    return program_clause(entry_program(entry), entry->length, kind, n, field);
}

const void *entry_first_clause(const struct query_entry *entry, uint8_t kind)
{
    struct program_field field;
    return entry_clause(entry, kind, 0, &field) ? field.code.bytes : NULL;
}

const struct wire_route *entry_route(const struct query_entry *entry)
{
    return entry_first_clause(entry, WIRE_AGGREGATE_ROUTE);
}

struct eval_context entry_context(struct query_entry *entry)
{
    return (struct eval_context){&attribute_readers, entry, entry->epoch, NULL};
}

bool entry_epoch_start(const struct query_entry *entry, uint32_t epoch, uint32_t *seconds,
                       uint32_t *milliseconds)
{
    return wide_divide((uint64_t)epoch * entry_program(entry)->period, 1000, seconds, milliseconds);
}

void entry_rows_each(struct query_entry *entry, uint32_t milliseconds)
{
    entry->period_seconds = milliseconds % 1000 == 0 ? milliseconds / 1000 : 0;
}

struct query_entry *entry_any(uint8_t index) { return &table[index]; }

struct query_entry *entry_find(uint8_t query)
{
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        if (table[i].query == query)
            return &table[i];
    return NULL;
}

struct query_entry *entry_of(uint8_t query)
{
    struct query_entry *entry = query != 0 ? entry_find(query) : NULL;
    return entry != NULL && entry->state & ENTRY_WHOLE ? entry : NULL;
}

bool entry_passed(const struct query_entry *entry)
{
    return entry->query != 0 && entry->idle == ENTRY_PASSED;
}

struct memory_block *memory_block_at(uint8_t index) { return &table[index].block; }
