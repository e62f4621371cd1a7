"""The expression bytecode that motes run: opcodes, assembler, checker.

A stack machine over 32-bit signed integers, each with a NULL flag. Boolean values are 0, 1 and NULL
with SQL's three-valued logic. A 32-bit overflow, a division by zero and a NULL operand give NULL.
Fixed point: the planner knows each value's decimal digits and inserts the scaling operators.
"""

from __future__ import annotations

from enum import IntEnum

#: Values the machine's stack holds; a program that needs more is refused.
STACK_DEPTH = 8
#: Largest power of ten a scaling operand may name (10**9 still fits 32 bits).
MAXIMUM_POWER = 9
#: Last column that CHANGES may name.
COLUMN_MAXIMUM = 11


class Op(IntEnum):
    """Opcodes. The comment gives the stack before → after; operands follow the opcode."""

    CONST8 = 0x01  # → c        operand: int8
    CONST16 = 0x02  # → c       operand: int16, little-endian
    CONST32 = 0x03  # → c       operand: int32, little-endian
    NULL = 0x04  # → NULL
    ATTR = 0x05  # → value      operand: attribute number
    STORED = (
        0x06  # → value    operand: 16 * storage point that is joined (0, 1) + field 0..11, or a StoredField
    )
    ADD = 0x10  # a b → a + b
    SUB = 0x11  # a b → a - b
    MUL = 0x12  # a b → round(a * b / 10**p)   operand: p, 0..9; 64-bit product
    DIV = 0x13  # a b → round(a * 10**p / b)   operand: p, 0..9; 64-bit numerator
    MOD = 0x14  # a b → a - b * truncate(a / b): the dividend's sign, as in C and SQL
    NEG = 0x15  # a → -a
    UPSCALE = 0x16  # a → a * 10**p            operand: p, 0..9
    DOWNSCALE = 0x17  # a → round(a / 10**p)   operand: p, 0..9
    HYPOT = 0x18  # a b → round(sqrt(a * a + b * b)): a distance
    ABS = 0x19  # a → |a|
    HASH = 0x1A  # a → hashed(a): 0..2**31 - 1
    EQ = 0x20  # a b → a = b
    NE = 0x21
    LT = 0x22
    LE = 0x23
    GT = 0x24
    GE = 0x25
    AND = 0x28  # false wins over NULL
    OR = 0x29  # true wins over NULL
    NOT = 0x2A
    IS_NULL = 0x2B  # a → 1 if a is NULL, else 0
    # a → 1 if a, read now, can change the WINMIN or WINMAX in a column, or that it has a value, else 0   operand: the column, 0..11
    CHANGES = 0x2C


# round() above is half away from zero.


class StoredField(IntEnum):
    """What every row of a storage point has besides its fields."""

    NUMBER = 13  # of the row, modulo 65536
    MILLISECONDS = 14  # of its sample time, 0..999
    SECONDS = 15  # of its sample time, network time


#: Largest number of an attribute that is sampled with its query's epoch: one of a mask of 32 bits.
ATTRIBUTE_MAXIMUM = 29
#: Numbers from here on, below the end, are attributes that a mote knows at any time.
ATTRIBUTE_OWN = 32
ATTRIBUTE_END = 64

OPERAND_SIZE: dict[Op, int] = {
    Op.CONST8: 1, Op.CONST16: 2, Op.CONST32: 4, Op.ATTR: 1, Op.STORED: 1,
    Op.MUL: 1, Op.DIV: 1, Op.UPSCALE: 1, Op.DOWNSCALE: 1, Op.CHANGES: 1,
}  # fmt: skip

#: (values taken, values left) of each opcode.
_STACK_EFFECT: dict[Op, tuple[int, int]] = {
    op: (0, 1) if op in (Op.CONST8, Op.CONST16, Op.CONST32, Op.NULL, Op.ATTR, Op.STORED)
    else (1, 1) if op in (Op.NEG, Op.ABS, Op.HASH, Op.UPSCALE, Op.DOWNSCALE, Op.NOT, Op.IS_NULL, Op.CHANGES)
    else (2, 1)
    for op in Op
}  # fmt: skip


#: Of ``hashed``: the multipliers of MurmurHash3's last step (A. Appleby, 2011), and by how many bits is shifted before, between and after.
HASH_FACTORS, HASH_SHIFTS = (0x85EBCA6B, 0xC2B2AE35), (16, 13, 16)


def hashed(value: int) -> int:
    """What HASH makes of the low 32 bits of an integer: ``x ^= x >> 16; x *= 0x85EBCA6B; x ^= x >> 13; x *= 0xC2B2AE35; x ^= x >> 16`` in
    32 bits without a sign, and of that the low 31 bits."""
    x = value & 0xFFFFFFFF
    for shift, factor in zip(HASH_SHIFTS, (*HASH_FACTORS, 1), strict=True):
        x = (x ^ x >> shift) * factor & 0xFFFFFFFF
    return x & 0x7FFFFFFF


class BytecodeError(ValueError):
    """A program that a mote would refuse."""


def constant(value: int) -> bytes:
    """The shortest instruction that pushes ``value`` (-2**31 .. 2**31 - 1)."""
    for op, size in ((Op.CONST8, 1), (Op.CONST16, 2), (Op.CONST32, 4)):
        if -(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1):
            return bytes([op]) + value.to_bytes(size, "little", signed=True)
    raise BytecodeError(f"constant {value} does not fit 32 bits: -2147483648..2147483647")


def instruction(op: Op, operand: int | None = None) -> bytes:
    """One instruction with a one-byte operand or none."""
    if OPERAND_SIZE.get(op, 0) != (0 if operand is None else 1):
        raise BytecodeError(f"{op.name} takes {OPERAND_SIZE.get(op, 0)} operand bytes")
    return bytes([op]) if operand is None else bytes([op, operand])


def is_attribute(number: int) -> bool:
    """Whether motes take this for the number of an attribute."""
    return number <= ATTRIBUTE_MAXIMUM or ATTRIBUTE_OWN <= number < ATTRIBUTE_END


def decode(code: bytes) -> list[tuple[Op, int | None]]:
    """Instructions with their operands. Raises BytecodeError with the offset of what is wrong."""
    instructions: list[tuple[Op, int | None]] = []
    at = 0
    while at < len(code):
        try:
            op = Op(code[at])
        except ValueError:
            raise BytecodeError(f"unknown opcode 0x{code[at]:02x} at {at}") from None
        size = OPERAND_SIZE.get(op, 0)
        if at + 1 + size > len(code):
            raise BytecodeError(f"{op.name} at {at} is cut off: {size} operand bytes expected")
        operand = code[at + 1 : at + 1 + size]
        signed = op in (Op.CONST8, Op.CONST16, Op.CONST32)
        instructions.append((op, int.from_bytes(operand, "little", signed=signed) if size else None))
        at += 1 + size
    return instructions


def check(code: bytes) -> int:
    """Verify a program as a mote does; returns the deepest stack. Raises BytecodeError."""
    depth = deepest = 0
    for op, operand in decode(code):
        takes, leaves = _STACK_EFFECT[op]
        if depth < takes:
            raise BytecodeError(f"{op.name} takes {takes} values, the stack holds {depth}")
        if op in (Op.MUL, Op.DIV, Op.UPSCALE, Op.DOWNSCALE) and operand > MAXIMUM_POWER:  # type: ignore[operator]
            raise BytecodeError(f"{op.name} power {operand}: expected 0..{MAXIMUM_POWER}")
        if op is Op.ATTR and not is_attribute(operand or 0):
            known = f"0..{ATTRIBUTE_MAXIMUM} or {ATTRIBUTE_OWN}..{ATTRIBUTE_END - 1}"
            raise BytecodeError(f"attribute number {operand}: expected {known}")
        if op is Op.CHANGES and operand > COLUMN_MAXIMUM:  # type: ignore[operator]
            raise BytecodeError(f"column {operand}: expected 0..{COLUMN_MAXIMUM}")
        if op is Op.STORED and not _is_stored(operand):  # type: ignore[arg-type]
            raise BytecodeError(
                f"stored field {operand}: expected 0..11 or 13..15, of the second point 16 more"
            )
        depth += leaves - takes
        deepest = max(deepest, depth)
    if deepest > STACK_DEPTH:
        raise BytecodeError(f"expression needs a stack of {deepest} values, motes have {STACK_DEPTH}")
    if depth != 1:
        raise BytecodeError(f"expression leaves {depth} values on the stack instead of 1")
    return deepest


def _is_stored(operand: int) -> bool:
    return operand >> 4 < 2 and operand & 15 != 12


def attributes_used(code: bytes) -> frozenset[int]:
    """Numbers of the attributes a program reads."""
    return frozenset(operand for op, operand in decode(code) if op is Op.ATTR and operand is not None)
