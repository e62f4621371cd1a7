#include "query/program/program.h"

#include <stddef.h>

#include "query/expressions/vm.h"

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

bool program_compute(const struct program_code *code, const struct eval_context *context,
                     int32_t *value)
{
    return vm_run(code->bytes, code->length, context, value);
}

bool program_passes(const struct wire_query_program *program, const struct eval_context *context)
{
    struct program_code code;
    for (uint8_t i = 0; program_condition(program, i, &code); i++) {
        int32_t value;
        if (!program_compute(&code, context, &value) || value == 0)
            return false;
    }
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
