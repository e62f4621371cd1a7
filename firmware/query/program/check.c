#include "query/program/check.h"

#include <stddef.h>

#include "query/expressions/vm.h"

#define FLAGS_KNOWN (WIRE_QUERY_AGGREGATE | WIRE_QUERY_ONCE | WIRE_QUERY_STAGED | WIRE_QUERY_SNOOP)

static bool conditions_check(const struct wire_query_program *program, uint32_t *attributes)
{
    const uint8_t *end = program->fields + program->where_length;
    struct program_code code;
    for (uint8_t i = 0; program_condition(program, i, &code); i++)
        if (code.length > end - code.bytes || !vm_check(code.bytes, code.length, attributes))
            return false;
    return true;
}

bool program_check(const uint8_t *bytes, uint8_t length, struct program_facts *facts)
{
    const struct wire_query_program *program = (const struct wire_query_program *)bytes;
    *facts = (struct program_facts){.program = program};
    if (length < sizeof *program || length > WIRE_PROGRAM_MAXIMUM)
        return false;
    if (program->flags & ~FLAGS_KNOWN)
        return false;
    if (program->period < WIRE_PERIOD_FAST_MINIMUM_MS || program->period > WIRE_PERIOD_MAXIMUM_MS)
        return false;
    if (program->where_length > length - sizeof *program ||
        !conditions_check(program, &facts->attributes))
        return false;

    struct program_field field;
    for (program_start(&field); program_next_field(program, length, &field);) {
        bool column = field.aggregate < WIRE_AGGREGATE_BUDGET;
        if (!(column ? column_check(&field, facts) : clauses_check(&field, facts)) ||
            facts->columns > WIRE_FIELDS_MAXIMUM)
            return false;
    }
    if (facts->columns == 0 || field.code.bytes == NULL ||
        field.code.bytes + field.code.length != bytes + length)
        return false;
    if (facts->attributes / VM_POINT(0) >> facts->sources != 0)
        return false; /* it reads a point that it does not name */
    if ((facts->keeps & (facts->keeps - 1)) != 0)
        return false;
    /* over the rows of all motes or of a point */
    bool whole = (program->flags & (WIRE_QUERY_AGGREGATE | WIRE_QUERY_ONCE)) != 0 ||
                 facts->keeps & PROGRAM_KEEPS_JOIN;
    return !(whole && program->period < WIRE_PERIOD_MINIMUM_MS);
}
