/* The stack machine for SELECT and WHERE expressions; opcodes and their meaning in wire.h.
 *
 * Values are 32-bit signed integers or NULL. Truth is 0, 1 and NULL; any value but 0 counts as
 * true. */
#ifndef SKERRY_QUERY_EXPRESSIONS_VM_H
#define SKERRY_QUERY_EXPRESSIONS_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "query/expressions/eval_context.h"

/* In a mask of attributes: the code reads rows of storage point 0 or 1 that the program joins. */
#define VM_POINT(point) ((uint32_t)1 << (WIRE_ATTRIBUTE_MAXIMUM + 1 + (point)))

/* Whether vm_run may run the code: known opcodes, operands whole and in range, stack never below
 * empty nor above WIRE_STACK_DEPTH, one value left. Adds the attributes it reads to *attributes. */
bool vm_check(const uint8_t *code, uint8_t length, uint32_t *attributes);
/* Runs code that vm_check accepted, at most 255 instructions. False: the value is NULL. */
bool vm_run(const uint8_t *code, uint8_t length, const struct eval_context *context,
            int32_t *value);

#endif
