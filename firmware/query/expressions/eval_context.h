/* What the code of an expression is evaluated against. */
#ifndef SKERRY_QUERY_EXPRESSIONS_EVAL_CONTEXT_H
#define SKERRY_QUERY_EXPRESSIONS_EVAL_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "board.h"
#include "wire.h"

struct query_entry;

struct eval_context;
/* The value of what an opcode's operand names; false: NULL. */
typedef bool vm_reader(uint8_t operand, int32_t *value, const struct eval_context *context);

/* Who reads what lies outside the code. What a reader is NULL for is NULL. */
struct vm_readers {
    vm_reader *attribute; /* ATTR */
    /* CHANGES: whether the reading in *value, INT32_MIN for NULL, can change the window in a column
     */
    vm_reader *changes;
    vm_reader *stored; /* STORED: a field of the rows that a join has met */
};

struct eval_context {
    const IN_FLASH struct vm_readers *readers;
    struct query_entry *query; /* whose code it is */
    uint32_t epoch;            /* of the row that is made */
    /* that lets the query run, or that a condition is asked about; NULL: none has come */
    const struct wire_event *event;
};

#endif
