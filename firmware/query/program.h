/* A serialized query program: checking it, and walking its parts. Layout in wire.h. */
#ifndef SKERRY_QUERY_PROGRAM_H
#define SKERRY_QUERY_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "query/eval_context.h"
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

/* What lies in one place of a query's state: a program has one of them at most. */
enum program_keeps {
    PROGRAM_KEEPS_ROWS = 1 << 0, /* its rows stay on the mote */
    PROGRAM_KEEPS_JOIN = 1 << 1, /* it joins rows of storage points */
    PROGRAM_KEEPS_TREE = 1 << 2, /* it is a semantic routing tree */
};

/* What the checks of a program's parts find out together. */
struct program_facts {
    const struct wire_query_program *program;
    uint32_t attributes; /* that it reads: bit n for attribute n, and VM_POINT */
    uint16_t windows;    /* bytes of its windows' state */
    uint8_t columns;     /* of a row, or cells of a partial state record */
    uint8_t sources;     /* storage points that it joins */
    uint8_t keeps;       /* of enum program_keeps */
};

/* Whether a mote may run the `length` (<= WIRE_PROGRAM_MAXIMUM) bytes. */
bool program_check(const uint8_t *bytes, uint8_t length, struct program_facts *facts);
/* Whether a field that is a column makes sense; adds to the facts. Implemented by query/column. */
bool column_check(const struct program_field *field, struct program_facts *facts);

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
