#include "query/program/query_table.h"

#include <stddef.h>
#include <string.h>

#include "lib/wide.h"

static struct slot slots[WIRE_QUERIES_MAXIMUM];
void slots_init(void)
{
    memset(slots, 0, sizeof slots);
    memory_init();
}

struct slot *slot_at(uint8_t index)
{
    return slots[index].state & SLOT_WHOLE ? &slots[index] : NULL;
}

struct slot *slot_next(const struct slot *slot)
{
    for (struct slot *next = slot != NULL ? (struct slot *)slot + 1 : slots;
         next < slots + WIRE_QUERIES_MAXIMUM; next++)
        if (next->state & SLOT_WHOLE)
            return next;
    return NULL;
}

uint8_t slot_bit(const struct slot *slot)
{
    uint8_t bit = 1;
    while (slot-- != slots)
        bit = (uint8_t)(bit << 1);
    return bit;
}

bool slot_next_column(const struct slot *slot, struct program_field *field)
{
    while (program_next_field(slot_program(slot), slot->length, field))
        if (field->aggregate < WIRE_AGGREGATE_BUDGET)
            return true;
    return false;
}

bool slot_clause(const struct slot *slot, uint8_t kind, uint8_t n, struct program_field *field)
{
    return program_clause(slot_program(slot), slot->length, kind, n, field);
}

const void *slot_first_clause(const struct slot *slot, uint8_t kind)
{
    struct program_field field;
    return slot_clause(slot, kind, 0, &field) ? field.code.bytes : NULL;
}

const struct wire_route *slot_route(const struct slot *slot)
{
    return slot_first_clause(slot, WIRE_AGGREGATE_ROUTE);
}

struct eval_context slot_context(struct slot *slot)
{
    return (struct eval_context){&attribute_readers, slot, slot->epoch, NULL};
}

bool slot_epoch_start(const struct slot *slot, uint32_t epoch, uint32_t *seconds,
                      uint32_t *milliseconds)
{
    return wide_divide((uint64_t)epoch * slot_program(slot)->period, 1000, seconds, milliseconds);
}

void slot_rows_each(struct slot *slot, uint32_t milliseconds)
{
    slot->period_seconds = milliseconds % 1000 == 0 ? milliseconds / 1000 : 0;
}

struct slot *slot_any(uint8_t index) { return &slots[index]; }

struct slot *slot_find(uint8_t query)
{
    for (uint8_t i = 0; i < WIRE_QUERIES_MAXIMUM; i++)
        if (slots[i].query == query)
            return &slots[i];
    return NULL;
}

struct slot *slot_of(uint8_t query)
{
    struct slot *slot = query != 0 ? slot_find(query) : NULL;
    return slot != NULL && slot->state & SLOT_WHOLE ? slot : NULL;
}

bool slot_passed(const struct slot *slot) { return slot->query != 0 && slot->idle == SLOT_PASSED; }

struct memory_block *memory_block_at(uint8_t index) { return &slots[index].block; }
