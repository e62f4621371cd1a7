/* The stack machine for SELECT and WHERE expressions; opcodes and their meaning in wire.h.
 *
 * Values are 32-bit signed integers or NULL. Truth is 0, 1 and NULL; any value but 0 counts as true. */
#ifndef SKERRY_QUERY_VM_H
#define SKERRY_QUERY_VM_H

#include <stdbool.h>
#include <stdint.h>

/* Value of an attribute; false: NULL. */
typedef bool vm_reader(uint8_t attribute, int32_t *value, const void *context);

/* Whether vm_run may run the code: known opcodes, operands whole and in range, stack never below
 * empty nor above WIRE_STACK_DEPTH, one value left. Adds the attributes it reads to *attributes. */
bool vm_check(const uint8_t *code, uint8_t length, uint32_t *attributes);
/* Runs code that vm_check accepted, at most 255 instructions. False: the value is NULL. */
bool vm_run(const uint8_t *code, uint8_t length, vm_reader *read, const void *context, int32_t *value);

#endif
