/* The checks of a program's columns: expressions, windows and aggregates. */
#include "query/expressions/vm.h"
#include "query/operators/aggregate.h"
#include "query/operators/row.h"
#include "query/operators/temporal.h"
#include "query/program/clauses.h"

bool column_check(const struct program_field *field, struct program_facts *facts)
{
    struct program_code code = field->code;
    uint8_t columns = 1;
    if (facts->program->flags & WIRE_QUERY_AGGREGATE) {
        columns = aggregate_cells(field);
    } else {
        if (field->aggregate != WIRE_AGGREGATE_NONE) {
            uint16_t size = temporal_size(field);
            if (size == 0)
                return false;
            facts->windows_size = (uint16_t)(facts->windows_size + size);
            code = temporal_code(field);
        }
        if (row_format_size(field->format) == 0)
            return false;
    }
    facts->columns = (uint8_t)(facts->columns + columns);
    if (columns == 0)
        return false;
    if (code.length == 0)
        return field->aggregate == WIRE_AGGREGATE_COUNT;
    return vm_check(code.bytes, code.length, &facts->attributes);
}
