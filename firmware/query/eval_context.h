/* What the code of an expression is evaluated against. */
#ifndef SKERRY_QUERY_EVAL_CONTEXT_H
#define SKERRY_QUERY_EVAL_CONTEXT_H

#include <stdint.h>

#include "board.h"
#include "query/vm.h"
#include "wire.h"

struct slot;

struct eval_context {
    const IN_FLASH struct vm_readers *readers;
    struct slot *query; /* whose code it is */
    uint32_t epoch;     /* of the row that is made */
    /* that lets the query run, or that a condition is asked about; NULL: none has come */
    const struct wire_event *event;
};

#endif
