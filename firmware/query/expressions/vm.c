#include "query/expressions/vm.h"

#include <stddef.h>

#include "lib/calls.h"
#include "lib/wide.h"
#include "query/expressions/eval_context.h"
#include "wire.h"

#define NULL_BIT(depth) ((uint8_t)(1U << (depth)))

struct stack {
    int32_t values[WIRE_STACK_DEPTH];
    uint8_t nulls; /* bit n: values[n] is NULL */
    uint8_t depth;
};
_Static_assert(WIRE_STACK_DEPTH <= 8, "one bit of `nulls` for each value");

static uint8_t operand_size(uint8_t op)
{
    switch (op) {
    case WIRE_OP_CONST32: return 4;
    case WIRE_OP_CONST16: return 2;
    case WIRE_OP_CONST8:
    case WIRE_OP_ATTR:
    case WIRE_OP_STORED:
    case WIRE_OP_MUL:
    case WIRE_OP_DIV:
    case WIRE_OP_UPSCALE:
    case WIRE_OP_DOWNSCALE:
    case WIRE_OP_CHANGES: return 1;
    default: return 0;
    }
}

/* Values an opcode takes from the stack; each leaves one. 255: no opcode. */
static uint8_t values_taken(uint8_t op)
{
    switch (op) {
    case WIRE_OP_CONST8:
    case WIRE_OP_CONST16:
    case WIRE_OP_CONST32:
    case WIRE_OP_NULL:
    case WIRE_OP_ATTR:
    case WIRE_OP_STORED: return 0;
    case WIRE_OP_NEG:
    case WIRE_OP_ABS:
    case WIRE_OP_HASH:
    case WIRE_OP_UPSCALE:
    case WIRE_OP_DOWNSCALE:
    case WIRE_OP_NOT:
    case WIRE_OP_IS_NULL:
    case WIRE_OP_CHANGES: return 1;
    case WIRE_OP_ADD:
    case WIRE_OP_SUB:
    case WIRE_OP_MUL:
    case WIRE_OP_DIV:
    case WIRE_OP_MOD:
    case WIRE_OP_EQ:
    case WIRE_OP_NE:
    case WIRE_OP_LT:
    case WIRE_OP_LE:
    case WIRE_OP_GT:
    case WIRE_OP_GE:
    case WIRE_OP_HYPOT:
    case WIRE_OP_AND:
    case WIRE_OP_OR: return 2;
    default: return 255;
    }
}

bool vm_check(const uint8_t *code, uint8_t length, uint32_t *attributes)
{
    uint8_t depth = 0;
    uint8_t at = 0;
    while (at < length) {
        uint8_t op = code[at++];
        uint8_t takes = values_taken(op);
        uint8_t size = operand_size(op);
        if (takes > depth || size > length - at)
            return false;
        if (op == WIRE_OP_ATTR) {
            if (code[at] >= WIRE_ATTRIBUTE_END ||
                (code[at] > WIRE_ATTRIBUTE_MAXIMUM && code[at] < WIRE_ATTRIBUTE_OWN))
                return false;
            if (code[at] <= WIRE_ATTRIBUTE_MAXIMUM)
                *attributes |= (uint32_t)1 << code[at];
        } else if (op == WIRE_OP_STORED) {
            if (code[at] >> 4 >= WIRE_SOURCES_MAXIMUM || (code[at] & 15) == WIRE_FIELDS_MAXIMUM)
                return false;
            *attributes |= VM_POINT(code[at] >> 4);
        } else if (takes > 0 && size > 0 &&
                   code[at] >
                       (op == WIRE_OP_CHANGES ? WIRE_FIELDS_MAXIMUM - 1 : WIRE_MAXIMUM_POWER)) {
            return false;
        }
        at = (uint8_t)(at + size);
        depth = (uint8_t)(depth - takes + 1);
        if (depth > WIRE_STACK_DEPTH)
            return false;
    }
    return depth == 1;
}

/* round(a * b / c), half away from zero: all multiplying and scaling opcodes are this. False: NULL.
 */
static bool scale(int32_t a, int32_t b, int32_t c, int32_t *value)
{
    return wide_round((uint64_t)wide_magnitude(a) * wide_magnitude(b), wide_magnitude(c),
                      ((a < 0) != (b < 0)) != (c < 0), value);
}

static bool modulo(int32_t a, int32_t b, int32_t *value)
{
    if (b == 0)
        return false;
    return wide_signed(wide_magnitude(a) % wide_magnitude(b), a < 0, value);
}

/* round(sqrt(a * a + b * b)). */
static NOT_INLINED bool hypotenuse(int32_t a, int32_t b, int32_t *value)
{
    uint32_t x = wide_magnitude(a), y = wide_magnitude(b), root = 0;
    uint64_t sum = (uint64_t)x * x + (uint64_t)y * y;
    for (uint32_t bit = (uint32_t)1 << 31; bit != 0; bit >>= 1) {
        uint32_t tried = root | bit;
        /* no root is longer than both sides */
        if (bit / 2 <= (x | y) && (uint64_t)tried * tried <= sum)
            root = tried;
    }
    return wide_signed(root + (sum > (uint64_t)root * (root + 1)), false, value);
}

/* The last step of MurmurHash3; bytecode.py has its definition. */
static int32_t hashed(uint32_t x)
{
    x = (x ^ x >> 16) * UINT32_C(0x85EBCA6B);
    x = (x ^ x >> 13) * UINT32_C(0xC2B2AE35);
    return (int32_t)((x ^ x >> 16) & INT32_MAX);
}

static bool compare(uint8_t op, int32_t a, int32_t b)
{
    switch (op) {
    case WIRE_OP_EQ: return a == b;
    case WIRE_OP_NE: return a != b;
    case WIRE_OP_LT: return a < b;
    case WIRE_OP_LE: return a <= b;
    case WIRE_OP_GT: return a > b;
    default: return a >= b;
    }
}

/* An opcode of two operands, neither NULL. False: NULL. */
static bool binary(uint8_t op, int32_t a, int32_t b, uint8_t operand, int32_t *value)
{
    switch (op) {
    case WIRE_OP_ADD: return wide_sum(a, b, value);
    case WIRE_OP_SUB: return wide_difference(a, b, value);
    case WIRE_OP_MUL: return scale(a, b, wide_power_of_ten(operand), value);
    case WIRE_OP_DIV: return scale(a, wide_power_of_ten(operand), b, value);
    case WIRE_OP_MOD: return modulo(a, b, value);
    case WIRE_OP_HYPOT: return hypotenuse(a, b, value);
    default: *value = compare(op, a, b); return true;
    }
}

/* AND and OR: the deciding truth (false for AND, true for OR) wins over NULL. False: NULL. */
static bool connect(bool deciding, bool a_known, int32_t a, bool b_known, int32_t b, int32_t *value)
{
    if ((a_known && (a != 0) == deciding) || (b_known && (b != 0) == deciding)) {
        *value = deciding;
        return true;
    }
    *value = !deciding;
    return a_known && b_known;
}

/* An opcode of one operand, which is known unless IS_NULL is asked. False: NULL. */
static bool unary(uint8_t op, int32_t a, uint8_t operand, int32_t *value)
{
    switch (op) {
    case WIRE_OP_NEG: return wide_difference(0, a, value);
    case WIRE_OP_ABS: return wide_signed(wide_magnitude(a), false, value);
    case WIRE_OP_HASH: *value = hashed((uint32_t)a); return true;
    case WIRE_OP_UPSCALE: return scale(a, wide_power_of_ten(operand), 1, value);
    case WIRE_OP_DOWNSCALE: return scale(a, 1, wide_power_of_ten(operand), value);
    default: /* NOT */ *value = a == 0; return true;
    }
}

static bool read(vm_reader *reader, uint8_t operand, int32_t *value,
                 const struct eval_context *context)
{
    return reader != NULL && reader(operand, value, context);
}

static bool push_operand(uint8_t op, const uint8_t *operand, const struct eval_context *context,
                         int32_t *value)
{
    switch (op) {
    case WIRE_OP_CONST8: *value = (int8_t)operand[0]; return true;
    case WIRE_OP_CONST16:
        *value = (int16_t)(uint16_t)(operand[0] | (uint16_t)operand[1] << 8);
        return true;
    case WIRE_OP_CONST32:
        *value = (int32_t)(operand[0] | (uint32_t)operand[1] << 8 | (uint32_t)operand[2] << 16 |
                           (uint32_t)operand[3] << 24);
        return true;
    case WIRE_OP_ATTR: return read(context->readers->attribute, operand[0], value, context);
    case WIRE_OP_STORED: return read(context->readers->stored, operand[0], value, context);
    default: /* NULL */ return false;
    }
}

/* NOLINTBEGIN(clang-analyzer-core.*): vm_check has seen that no opcode takes what is not there. */
static void step(struct stack *stack, uint8_t op, const uint8_t *operand,
                 const struct eval_context *context)
{
    uint8_t takes = values_taken(op);
    uint8_t first = (uint8_t)(stack->depth - takes);
    bool known = !(stack->nulls & NULL_BIT(first));
    int32_t value = 0;
    if (takes == 0) {
        known = push_operand(op, operand, context, &value);
    } else if (op == WIRE_OP_IS_NULL) {
        value = !known;
        known = true;
    } else if (op == WIRE_OP_CHANGES) {
        value = known ? stack->values[first] : INT32_MIN; /* no reading's value */
        known = read(context->readers->changes, *operand, &value, context);
    } else if (takes == 1) {
        known = known && unary(op, stack->values[first], *operand, &value);
    } else {
        bool second_known = !(stack->nulls & NULL_BIT(first + 1));
        int32_t a = stack->values[first], b = stack->values[first + 1];
        if (op == WIRE_OP_AND || op == WIRE_OP_OR)
            known = connect(op == WIRE_OP_OR, known, a, second_known, b, &value);
        else
            known = known && second_known && binary(op, a, b, *operand, &value);
    }
    stack->values[first] = value;
    if (known)
        stack->nulls &= (uint8_t)~NULL_BIT(first);
    else
        stack->nulls = (uint8_t)(stack->nulls | NULL_BIT(first));
    stack->depth = (uint8_t)(first + 1);
}

bool vm_run(const uint8_t *code, uint8_t length, const struct eval_context *context, int32_t *value)
{
    static const uint8_t no_operand;
    /* values are written before they are read: zeroing them took a fifth of a condition's cycles */
    struct stack stack;
    stack.depth = stack.nulls = 0;
    uint8_t at = 0;
    while (at < length) {
        uint8_t op = code[at++];
        uint8_t size = operand_size(op);
        step(&stack, op, size > 0 ? &code[at] : &no_operand, context);
        at = (uint8_t)(at + size);
    }
    *value = stack.values[0];
    return !(stack.nulls & NULL_BIT(0));
}
/* NOLINTEND(clang-analyzer-core.*) */
