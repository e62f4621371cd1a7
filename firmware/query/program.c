#include "query/program.h"

#include <stddef.h>

#include "query/aggregate.h"
#include "query/budget.h"
#include "query/events.h"
#include "query/policy.h"
#include "query/row.h"
#include "query/srt.h"
#include "query/storage.h"
#include "query/temporal.h"
#include "query/vm.h"

#define FLAGS_KNOWN (WIRE_QUERY_AGGREGATE | WIRE_QUERY_ONCE | WIRE_QUERY_STAGED | WIRE_QUERY_SNOOP)

bool program_condition(const struct wire_query_program *program, uint8_t index,
                       struct program_code *code)
{
    *code = (struct program_code){program->fields, program->where_length};
    if (!(program->flags & WIRE_QUERY_STAGED))
        return index == 0 && code->length > 0;
    /* Each behind its length. */
    for (uint8_t at = 0; at < program->where_length; at = (uint8_t)(at + 1 + code->length)) {
        *code = (struct program_code){&program->fields[at + 1], program->fields[at]};
        if (index-- == 0)
            return true;
    }
    return false;
}

static bool conditions_check(const struct wire_query_program *program, uint32_t *attributes)
{
    const uint8_t *end = program->fields + program->where_length;
    struct program_code code;
    for (uint8_t i = 0; program_condition(program, i, &code); i++)
        if (code.length > end - code.bytes || !vm_check(code.bytes, code.length, attributes))
            return false;
    return true;
}

bool program_next_field(const struct wire_query_program *program, uint8_t length,
                        struct program_field *field)
{
    const uint8_t *at = field->code.bytes != NULL ? field->code.bytes + field->code.length
                                                  : program->fields + program->where_length;
    const struct wire_program_field *header = (const struct wire_program_field *)at;
    uint8_t left = (uint8_t)((const uint8_t *)program + length - at);
    if (left < sizeof *header || header->code_length > left - sizeof *header)
        return false;
    field->format = header->format;
    field->aggregate = header->aggregate;
    field->code = (struct program_code){at + sizeof *header, header->code_length};
    return true;
}

bool program_clause(const struct wire_query_program *program, uint8_t length, uint8_t kind,
                    uint8_t n, struct program_field *field)
{
    for (program_start(field); program_next_field(program, length, field);)
        if (field->aggregate == kind && n-- == 0)
            return true;
    return false;
}

static bool field_check(const struct program_field *field, bool aggregating, uint32_t period,
                        uint32_t *attributes, uint16_t *windows, uint8_t *sources)
{
    if (field->aggregate >= WIRE_AGGREGATE_STORE && field->aggregate <= WIRE_AGGREGATE_INTO)
        return !(aggregating && field->aggregate != WIRE_AGGREGATE_FROM) &&
               storage_check(field, sources);
    if (field->aggregate == WIRE_AGGREGATE_QUEUE)
        return !aggregating && policy_check(field, period);
    if (field->aggregate == WIRE_AGGREGATE_BUDGET) {
        *attributes |= (uint32_t)1 << WIRE_ATTRIBUTE_VOLTAGE;
        return budget_check(field);
    }
    if (field->aggregate == WIRE_AGGREGATE_SRT || field->aggregate == WIRE_AGGREGATE_ROUTE)
        return srt_check(field, attributes);
    if (field->aggregate > WIRE_AGGREGATE_BUDGET)
        return events_check(field, attributes);
    struct program_code code = field->code;
    if (!aggregating && field->aggregate != WIRE_AGGREGATE_NONE) {
        uint16_t size = temporal_size(field);
        if (size == 0)
            return false;
        *windows = (uint16_t)(*windows + size);
        code = temporal_code(field);
    }
    if (aggregating ? aggregate_cells(field) == 0 : row_format_size(field->format) == 0)
        return false;
    if (code.length == 0)
        return field->aggregate == WIRE_AGGREGATE_COUNT;
    return vm_check(code.bytes, code.length, attributes);
}

bool program_check(const uint8_t *bytes, uint8_t length, uint32_t *attributes, uint16_t *windows)
{
    const struct wire_query_program *program = (const struct wire_query_program *)bytes;
    *attributes = 0;
    *windows = 0;
    if (length < sizeof *program || length > WIRE_PROGRAM_MAXIMUM)
        return false;
    if (program->flags & ~FLAGS_KNOWN)
        return false;
    if (program->period < WIRE_PERIOD_FAST_MINIMUM_MS || program->period > WIRE_PERIOD_MAXIMUM_MS)
        return false;
    if (program->where_length > length - sizeof *program || !conditions_check(program, attributes))
        return false;

    struct program_field field;
    uint8_t count = 0; /* of a row's columns, of a record's cells */
    uint8_t sources = 0;
    bool stored = false, tree = false; /* rows stay here; it is a semantic routing tree */
    for (program_start(&field); program_next_field(program, length, &field);) {
        if (!field_check(&field, program->flags & WIRE_QUERY_AGGREGATE, program->period, attributes,
                         windows, &sources))
            return false;
        stored |= field.aggregate == WIRE_AGGREGATE_STORE || field.aggregate == WIRE_AGGREGATE_INTO;
        tree |= field.aggregate == WIRE_AGGREGATE_SRT;
        count = (uint8_t)(count + (program->flags & WIRE_QUERY_AGGREGATE
                                       ? aggregate_cells(&field)
                                       : field.aggregate < WIRE_AGGREGATE_BUDGET));
        if (count > WIRE_FIELDS_MAXIMUM)
            return false;
    }
    if (count == 0 || field.code.bytes + field.code.length != bytes + length)
        return false;
    if (*attributes / VM_POINT(0) >> sources != 0)
        return false; /* it reads a point that it does not name */
    /* over the rows of all motes or of a point */
    bool whole = (program->flags & (WIRE_QUERY_AGGREGATE | WIRE_QUERY_ONCE)) != 0 || sources > 0;
    /* What a point, a join and a tree keep lies in the same place. */
    return stored + (sources > 0) + tree <= 1 &&
           !(whole && program->period < WIRE_PERIOD_MINIMUM_MS);
}
