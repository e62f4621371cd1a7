/* The stack machine for SELECT and WHERE expressions; opcodes and their meaning in wire.h.
 *
 * Values are 32-bit signed integers or NULL. Truth is 0, 1 and NULL; any value but 0 counts as
 * true. */
#ifndef SKERRY_QUERY_VM_H
#define SKERRY_QUERY_VM_H

#include <stdbool.h>
#include <stdint.h>

/* For a reader, what a STORED opcode names: this and its operand. */
#define VM_STORED 0x80
/* Likewise a CHANGES opcode; the reading that it is about is in *value, INT32_MIN for NULL. */
#define VM_WINDOW 0x40
/* In a mask of attributes: the code reads rows of storage point 0 or 1 that the program joins. */
#define VM_POINT(point) ((uint32_t)1 << (WIRE_ATTRIBUTE_MAXIMUM + 1 + (point)))

/* Value of an attribute; false: NULL. */
typedef bool vm_reader(uint8_t attribute, int32_t *value, const void *context);

/* Whether vm_run may run the code: known opcodes, operands whole and in range, stack never below
 * empty nor above WIRE_STACK_DEPTH, one value left. Adds the attributes it reads to *attributes. */
bool vm_check(const uint8_t *code, uint8_t length, uint32_t *attributes);
/* Runs code that vm_check accepted, at most 255 instructions. False: the value is NULL. */
bool vm_run(const uint8_t *code, uint8_t length, vm_reader *read, const void *context,
            int32_t *value);

#endif
