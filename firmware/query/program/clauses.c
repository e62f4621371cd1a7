#include "query/program/clauses.h"

#include <stddef.h>

#include "query/program/query_table.h"

#define CLAUSE_ADDRESS(name) &clause_##name,
static const IN_FLASH struct clause *const IN_FLASH table[] = {CLAUSES(CLAUSE_ADDRESS)};
#define COUNT ((uint8_t)(sizeof table / sizeof table[0]))

bool clauses_check(const struct program_field *field, struct program_facts *facts)
{
    for (uint8_t i = 0; i < COUNT; i++)
        if (table[i]->kind == field->aggregate && table[i]->check != NULL)
            return table[i]->check(field, facts);
    return false;
}

uint8_t clauses_refusal(const struct query_entry *entry, uint16_t *missing)
{
    struct program_field field;
    uint8_t reason = 0;
    for (uint8_t i = 0; reason == 0 && i < COUNT; i++)
        if (table[i]->refusal != NULL && entry_clause(entry, table[i]->kind, 0, &field))
            reason = table[i]->refusal(entry, &field, missing);
    return reason;
}

void clauses_open(struct query_entry *entry)
{
    struct program_field field;
    for (uint8_t i = 0; i < COUNT; i++)
        if (table[i]->open != NULL && entry_clause(entry, table[i]->kind, 0, &field))
            table[i]->open(entry, &field);
}

void clauses_close(const struct query_entry *entry)
{
    struct program_field field;
    for (uint8_t i = 0; i < COUNT; i++)
        if (table[i]->close != NULL && entry_clause(entry, table[i]->kind, 0, &field))
            table[i]->close(entry);
}

uint16_t clauses_size(const struct query_entry *entry, uint8_t kind)
{
    struct program_field field;
    /* A storage point's rows take 56 KB at most, all else less than 8. */
    uint16_t size = 0;
    for (uint8_t i = 0; i < COUNT && table[i]->kind != kind; i++)
        if (table[i]->state_size != NULL && entry_clause(entry, table[i]->kind, 0, &field))
            size = (uint16_t)(size + table[i]->state_size(entry, &field));
    return size;
}

uint8_t *clauses_state(const struct query_entry *entry, uint8_t kind)
{
    return entry_windows(entry) + entry->windows_size + clauses_size(entry, kind);
}
