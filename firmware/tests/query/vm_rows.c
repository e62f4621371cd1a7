/* The stack machine over many rows at once, for tests that compare it with a database. */
#include <stddef.h>

#include "query/expressions/vm.h"

struct row {
    struct eval_context context;
    const int32_t *values; /* one per attribute */
    uint32_t nulls;        /* bit n: attribute n is NULL */
};

static bool read_row(uint8_t attribute, int32_t *value, const struct eval_context *context)
{
    const struct row *row = (const struct row *)context;
    *value = row->values[attribute];
    return !(row->nulls >> attribute & 1);
}

bool vm_accepts(const uint8_t *code, uint8_t length)
{
    uint32_t attributes = 0;
    return vm_check(code, length, &attributes);
}

static const struct vm_readers row_values = {.attribute = read_row};

/* Runs checked code over `count` rows of `width` values; results[i] and known[i] are row i's. */
void vm_run_rows(const uint8_t *code, uint8_t length, const int32_t *values, const uint32_t *nulls,
                 uint32_t width, uint32_t count, int32_t *results, uint8_t *known)
{
    for (uint32_t i = 0; i < count; i++) {
        struct row row = {{.readers = &row_values}, &values[(size_t)i * width], nulls[i]};
        known[i] = vm_run(code, length, &row.context, &results[i]);
    }
}
