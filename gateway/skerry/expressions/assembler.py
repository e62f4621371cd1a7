"""Typed expressions → bytecode, and whether a mote can run them."""

from __future__ import annotations

from functools import lru_cache

from skerry.expressions.build import INT32_MAXIMUM
from skerry.expressions.expression import TIME_LEAF, Expr, render
from skerry_protocol import bytecode
from skerry_protocol.attributes import TALLY_ATTRIBUTES
from skerry_protocol.bytecode import MAXIMUM_POWER, OPERAND_SIZE, STACK_DEPTH, Op
from skerry_protocol.codes import Aggregate

#: Operators whose operands may change places, and what they become then.
_SWAPPED: dict[Op, Op] = {
    Op.ADD: Op.ADD, Op.MUL: Op.MUL, Op.HYPOT: Op.HYPOT, Op.AND: Op.AND, Op.OR: Op.OR, Op.EQ: Op.EQ, Op.NE: Op.NE,
    Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE,
}  # fmt: skip


def assemble(expr: Expr) -> bytes:
    """Bytecode of an expression that :func:`obstacle` has nothing against."""
    code = _assemble(expr)
    bytecode.check(code)
    return code


def _assemble(expr: Expr) -> bytes:
    if expr.op is Op.CONST32:
        return bytecode.constant(expr.operand or 0)
    op: Op = expr.op
    args = expr.args
    if len(args) == 2 and op in _SWAPPED and stack_depth(args[1]) > stack_depth(args[0]):
        # The deeper side first: the other then finds one value on the stack, not many.
        op, args = _SWAPPED[op], (args[1], args[0])
    operand = (expr.operand or 0) if OPERAND_SIZE.get(op) else None
    return b"".join(map(_assemble, args)) + bytecode.instruction(op, operand)


@lru_cache(maxsize=65536)
def stack_depth(expr: Expr) -> int:
    """Values that the expression needs on the stack at once."""
    if len(expr.args) < 2:
        return stack_depth(expr.args[0]) if expr.args else 1
    first, second = (stack_depth(argument) for argument in expr.args)
    if expr.op in _SWAPPED:
        first, second = max(first, second), min(first, second)
    return max(first, second + 1)


@lru_cache(maxsize=65536)
def obstacle(expr: Expr, rows: bool = False) -> str | None:
    """Why motes cannot run the expression; None: they can. ``rows``: whether what the gateway knows of rows is known, as in the past,
    where the gateway does in their place what motes can."""
    for node in expr.walk():
        if node.aggregate is not Aggregate.NONE or node.final[:1] in (("table",), (TIME_LEAF,)):
            return f"{render(node)} is known at the gateway only"
        if node.is_attribute and node.operand in _OF_ROWS and not rows:
            return f"{render(node)} is known at the gateway only"
        if node.low < -INT32_MAXIMUM - 1 or node.high > INT32_MAXIMUM:
            return f"{render(node)} may need more than a mote's 32 bits"
        if OPERAND_SIZE.get(node.op) and node.op in _SCALING and (node.operand or 0) > MAXIMUM_POWER:
            return f"{render(node)} needs more digits than a mote computes with"
    depth = stack_depth(expr)
    if depth > STACK_DEPTH:
        return f"expression too deep for a mote: it needs a stack of {depth} values, motes have {STACK_DEPTH}"
    return None


_OF_ROWS = frozenset(entry.number for entry in TALLY_ATTRIBUTES)
_SCALING = (Op.MUL, Op.DIV, Op.UPSCALE, Op.DOWNSCALE)
