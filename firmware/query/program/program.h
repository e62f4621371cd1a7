/* A serialized query program: walking its parts, and evaluating their code. Layout in wire.h. */
#ifndef SKERRY_QUERY_PROGRAM_PROGRAM_H
#define SKERRY_QUERY_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "query/expressions/eval_context.h"
#include "wire.h"

/* Code of an expression; length 0: none. */
struct program_code {
    const uint8_t *bytes;
    uint8_t length;
};

struct program_field {
    uint8_t format;    /* enum wire_format */
    uint8_t aggregate; /* enum wire_aggregate */
    struct program_code code;
};

/* Before the first field. */
static inline void program_start(struct program_field *field) { field->code.bytes = NULL; }
/* The field behind *field; false where no whole one follows in `length` bytes. */
bool program_next_field(const struct wire_query_program *program, uint8_t length,
                        struct program_field *field);

/* The rest is for programs that program_check accepted. */
/* Conditions that all have to be true, in the order in which they are to be asked: number `index`,
 * from 0 on; false past the last. */
bool program_condition(const struct wire_query_program *program, uint8_t index,
                       struct program_code *code);
/* What code comes to; false: NULL. */
bool program_compute(const struct program_code *code, const struct eval_context *context,
                     int32_t *value);
/* Whether all conditions are true. */
bool program_passes(const struct wire_query_program *program, const struct eval_context *context);
/* The n-th field of a kind that is no column, from 0; false: there are not so many. */
bool program_clause(const struct wire_query_program *program, uint8_t length, uint8_t kind,
                    uint8_t n, struct program_field *field);

#endif
