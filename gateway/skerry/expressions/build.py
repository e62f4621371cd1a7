"""Builds typed expressions: aligns decimal digits, bounds results, folds constants.

Rules for digits: a sum, a difference and a remainder have those of the finer operand; a product the sum
of both (fewer, but no fewer than the finer operand's, where only so it fits a mote's 32 bits); a quotient
three more than the finer operand (fewer likewise). Comparisons are exact at any number of digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from skerry.expressions.expression import LIKE, PLAIN, TEXT_LEAF, Expr, Kind, decimal_text
from skerry.expressions.unit_algebra import difference_unit, product_unit, sum_unit
from skerry_protocol.attributes import BY_NAME, Attribute, ValueFormat
from skerry_protocol.bytecode import MAXIMUM_POWER, Op, hashed
from skerry_protocol.codes import Aggregate

INT32_MAXIMUM = 2**31 - 1
#: Readings in one epoch's aggregate.
COUNT_MAXIMUM = 0xFFFF
INT64_MAXIMUM = 2**63 - 1
#: Conditions of a list that stand side by side.
_WALKED = 64
#: Digits that a quotient has beyond its operands'.
QUOTIENT_DIGITS = 3
#: Decimal places of random().
RANDOM_DIGITS = 6

_FLIPPED = {Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE, Op.EQ: Op.EQ, Op.NE: Op.NE}


class MagnitudeError(ValueError):
    """A value may leave the gateway's 64 bits."""


def number(value: int, digits: int, unit: str = PLAIN) -> Expr:
    """A constant ``value * 10**-digits``, brought to the fewest digits."""
    while digits > 0 and value % 10 == 0:
        value, digits = value // 10, digits - 1
    return _number(Op.CONST32, (), digits, value, value, unit, operand=value)


def null() -> Expr:
    """NULL."""
    return Expr(Op.NULL, kind=Kind.NULL, low=0, high=0)


def text(value: str) -> Expr:
    """A constant text."""
    return Expr(Op.NULL, kind=Kind.TEXT, final=(TEXT_LEAF, value))


def compare_texts(op: Op, a: Expr, b: Expr) -> Expr:
    """``a op b`` of texts, by the code points of their characters."""
    return _condition(op, (a, b))


def like(a: Expr, pattern: str) -> Expr:
    """``a LIKE pattern``."""
    return Expr(Op.EQ, (a, text(pattern)), kind=Kind.CONDITION, final=(LIKE,))


def attribute(entry: Attribute) -> Expr:
    """An attribute. Bounds are what its format can carry: sensors go beyond their data sheets."""
    low, high = entry.format.minimum, entry.format.maximum
    if entry.format is ValueFormat.I32:
        low, high = round(entry.minimum * 10**entry.digits), round(entry.maximum * 10**entry.digits)
    return Expr(Op.ATTR, (), entry.number, entry.digits, low, high, Kind.NUMBER, entry.unit)


def aggregate(kind: Aggregate, argument: Expr | None) -> Expr:
    """An aggregate over all motes. AVG has a quotient's digits."""
    if kind is Aggregate.COUNT or argument is None:
        args = () if argument is None else (argument,)
        return Expr(Op.ATTR, args, None, 0, 0, COUNT_MAXIMUM, Kind.NUMBER, "", Aggregate.COUNT)
    low, high, digits = argument.low, argument.high, argument.digits
    if kind is Aggregate.SUM:
        low, high = min(low, 0) * COUNT_MAXIMUM, max(high, 0) * COUNT_MAXIMUM
    elif kind is Aggregate.AVG:
        digits += QUOTIENT_DIGITS
        low, high = low * 10**QUOTIENT_DIGITS, high * 10**QUOTIENT_DIGITS
    return Expr(Op.ATTR, (argument,), None, digits, low, high, Kind.NUMBER, argument.unit, kind)


def state(kind: Aggregate, argument: Expr, cells: int, final: tuple[str | int, ...]) -> Expr:
    """What the gateway makes of an aggregate's state; the caller sets digits, bounds and unit."""
    return Expr(Op.ATTR, (argument,), kind=Kind.NUMBER, aggregate=kind, cells=cells, final=final)


def temporal(
    kind: Aggregate, argument: Expr, values: tuple[int, ...], digits: int, low: int, high: int, unit: str
) -> Expr:
    """A temporal aggregate with its window, slide and power, and the period of a window of epochs."""
    final: tuple[str | int, ...] = ("temporal", *values)
    return Expr(Op.ATTR, (argument,), None, digits, low, high, Kind.NUMBER, unit, kind, 1, final)


def changes(column: int, window: Expr) -> Expr:
    """Whether the reading of a window in a mote query's column can change it: as a mote sees it, in one epoch."""
    return Expr(
        Op.CHANGES, window.args, column, aggregate=Aggregate.NONE, final=("changes", window.aggregate.name)
    )


def stored(operand: int, name: str, digits: int, low: int, high: int, unit: str) -> Expr:
    """A value of a storage point's row, under a name for people."""
    return Expr(Op.STORED, (), operand, digits, low, high, Kind.NUMBER, unit, final=("stored", name))


def constant_of(value: int) -> Expr:
    """A whole number."""
    return _number(Op.CONST32, (), 0, value, value, PLAIN, operand=value)


def integer(a: Expr) -> Expr:
    """``a``'s integer as a number of its own: without digits and unit."""
    return replace(a, digits=0, unit=PLAIN)


def quotient(a: Expr, b: Expr) -> Expr:
    """``a / b`` of whole numbers, b above 0, rounded to a whole number."""
    divisor = max(1, b.low)
    low, high = rounded_quotient(a.low, divisor), rounded_quotient(a.high, divisor)
    return _number(Op.DIV, (a, b), 0, min(low, 0), max(high, 0), PLAIN, operand=0)


def downscale(a: Expr, power: int) -> Expr:
    """``a`` with ``power`` digits less, rounded."""
    if power == 0:
        return a
    low, high = (rounded_quotient(bound, 10**power) for bound in (a.low, a.high))
    return _number(Op.DOWNSCALE, (a,), a.digits - power, low, high, a.unit, operand=power)


def negate(a: Expr) -> Expr:
    """``-a``."""
    return _number(Op.NEG, (a,), a.digits, -a.high, -a.low, a.unit)


def upscale(a: Expr, power: int) -> Expr:
    """``a`` with ``power`` more digits, same value."""
    if power == 0 or a.kind is Kind.NULL:
        return a
    factor = 10**power
    low, high, digits = a.low * factor, a.high * factor, a.digits + power
    if a.is_constant and a.operand is not None:
        # Not number(): it would take the digits away again.
        return Expr(Op.CONST32, (), _checked(a.operand * factor), digits, low, high, Kind.NUMBER, a.unit)
    if power > MAXIMUM_POWER:
        a = upscale(a, power - MAXIMUM_POWER)
        power = MAXIMUM_POWER
    return _number(Op.UPSCALE, (a,), digits, low, high, a.unit, operand=power)


def align(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Both with the digits of the finer one."""
    digits = max(a.digits, b.digits)
    return upscale(a, digits - a.digits), upscale(b, digits - b.digits)


def add(a: Expr, b: Expr) -> Expr:
    """``a + b``."""
    a, b = align(a, b)
    return _number(Op.ADD, (a, b), max(a.digits, b.digits), a.low + b.low, a.high + b.high, _sum_unit(a, b))


def subtract(a: Expr, b: Expr) -> Expr:
    """``a - b``."""
    a, b = align(a, b)
    return _number(
        Op.SUB,
        (a, b),
        max(a.digits, b.digits),
        a.low - b.high,
        a.high - b.low,
        difference_unit(a.unit, b.unit),
    )


def multiply(a: Expr, b: Expr) -> Expr:
    """``a * b``."""
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    largest = _checked(max(map(abs, corners)))
    full = a.digits + b.digits
    for digits in range(full, max(a.digits, b.digits) - 1, -1):
        power = full - digits
        if power <= MAXIMUM_POWER and rounded_quotient(largest, 10**power) <= INT32_MAXIMUM:
            break
    else:
        power = 0
    scaled = [rounded_quotient(corner, 10**power) for corner in corners]
    unit = _product_unit(a, b)
    return _number(Op.MUL, (a, b), full - power, min(scaled), max(scaled), unit, operand=power)


def divide(a: Expr, b: Expr) -> Expr:
    """``a / b``; NULL where b is 0."""
    base = max(a.digits, b.digits)
    dividend = _magnitude(a)
    divisor = 1 if b.low <= 0 <= b.high else min(abs(b.low), abs(b.high))
    for digits in range(base + QUOTIENT_DIGITS, base - 1, -1):
        power = digits - a.digits + b.digits
        if power <= MAXIMUM_POWER and rounded_quotient(dividend * 10**power, divisor) <= INT32_MAXIMUM:
            break
    else:
        digits = base + QUOTIENT_DIGITS
        power = digits - a.digits + b.digits
    # At least 1: the factor alone must fit, too, where the dividend is always 0.
    largest = rounded_quotient(_checked(max(dividend, 1) * 10**power), divisor)
    low = 0 if a.low >= 0 and b.low >= 0 else -largest
    unit = _quotient_unit(a, b)
    return _number(Op.DIV, (a, b), digits, low, largest, unit, operand=power)


def modulo(a: Expr, b: Expr) -> Expr:
    """``a % b`` with a's sign; NULL where b is 0."""
    a, b = align(a, b)
    largest = min(_magnitude(a), max(_magnitude(b) - 1, 0))
    low, high = 0 if a.low >= 0 else -largest, 0 if a.high <= 0 else largest
    return _number(Op.MOD, (a, b), max(a.digits, b.digits), low, high, a.unit)


def shift(a: Expr, places: int) -> Expr:
    """``a >> places`` of a whole number: divided by a power of two and rounded down."""
    divisor = constant_of(2**places)
    # What is below the quotient, never negative: remainders have a's sign.
    rest = modulo(add(modulo(a, divisor), divisor), divisor)
    return replace(quotient(subtract(a, rest), divisor), low=a.low >> places, high=a.high >> places)


def compare(op: Op, a: Expr, b: Expr) -> Expr:
    """``a op b``, exact. A constant with more digits than the other side is cut to it, for < <= > >=."""
    if a.is_constant and not b.is_constant:
        a, b, op = b, a, _FLIPPED[op]
    if b.is_constant and not a.is_constant and a.kind is Kind.NUMBER:
        if op not in (Op.EQ, Op.NE):
            return _compare_constant(op, a, b)
        b = _within_reach(a, b)
    a, b = align(a, b)
    return _condition(op, (a, b))


def _compare_constant(op: Op, a: Expr, b: Expr) -> Expr:
    """For integers x and c' = floor(c): x > c and x >= c both mean x > c' unless c = c'."""
    constant = b.operand or 0
    if b.digits > a.digits:
        constant //= 10 ** (b.digits - a.digits)
        op = Op.GT if op in (Op.GT, Op.GE) else Op.LE
    else:
        constant *= 10 ** (a.digits - b.digits)
    if abs(constant) > INT32_MAXIMUM:
        # Beyond all that a can be: the nearest constant that decides alike for every value of a.
        constant = min(max(constant, a.low - 1), a.high + 1)
    side = Expr(Op.CONST32, (), constant, a.digits, constant, constant, Kind.NUMBER, b.unit)
    return _condition(op, (a, side))


def _within_reach(a: Expr, b: Expr) -> Expr:
    """The constant ``b``; one with ``a``'s digits that equals a where b does, where 64 bits do not hold both at the finer digits."""
    power = 10 ** abs(a.digits - b.digits)
    if max(_magnitude(a), _magnitude(b)) * power <= INT64_MAXIMUM:
        return b
    value, rest = divmod(b.operand or 0, power) if b.digits > a.digits else ((b.operand or 0) * power, 0)
    if rest or not a.low <= value <= a.high:
        # What a never is.
        value = a.high + 1 if a.high < INT64_MAXIMUM else a.low - 1
    return Expr(Op.CONST32, (), value, a.digits, value, value, Kind.NUMBER, b.unit)


def logical(op: Op, a: Expr, b: Expr) -> Expr:
    """``a AND b``, ``a OR b``."""
    return _condition(op, (a, b))


def invert(a: Expr) -> Expr:
    """``NOT a``."""
    return _condition(Op.NOT, (a,))


def is_null(a: Expr) -> Expr:
    """``a IS NULL``."""
    return _condition(Op.IS_NULL, (a,))


def join(op: Op, conditions: Sequence[Expr]) -> Expr | None:
    """All conditions joined by AND or OR, from the left; more than a mote's program ever holds as a shallow tree, which a walk can
    follow. None without any."""
    if len(conditions) > _WALKED:
        half = len(conditions) // 2
        conditions = [
            one for part in (conditions[:half], conditions[half:]) if (one := join(op, part)) is not None
        ]
    result: Expr | None = None
    for condition in conditions:
        result = condition if result is None else logical(op, result, condition)
    return result


def only_where(argument: Expr | None, condition: Expr | None) -> Expr | None:
    """What an aggregate is of that counts an epoch's reading only where a condition is true: ``argument``, NULL elsewhere. None for
    ``argument``: of COUNT(*); for ``condition``: it counts everywhere.

    A condition's truth is 1, so that 0 divided by it is 0 where it is true, and NULL where it is false or unknown.
    """
    if condition is None:
        return argument
    nothing = Expr(Op.CONST32, (), 0, 0, 0, 0, Kind.NUMBER)
    there = Expr(Op.DIV, (nothing, condition), 0, 0, 0, 0, Kind.NUMBER, final=("where",))
    if argument is None:
        return there
    there = replace(there, digits=argument.digits)
    bounds = argument.digits, argument.low, argument.high
    return Expr(Op.ADD, (argument, there), None, *bounds, Kind.NUMBER, argument.unit, final=("where",))


def absolute(a: Expr) -> Expr:
    """``|a|``."""
    low = 0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return _number(Op.ABS, (a,), a.digits, low, _magnitude(a), a.unit)


def hash_of(a: Expr) -> Expr:
    """``hash(a)``, of the integer that it is in units of its last decimal place."""
    return _number(Op.HASH, (a,), 0, 0, INT32_MAXIMUM, PLAIN)


def random(seed: int) -> Expr:
    """A number from 0 to below 1 that depends on the seed, 0 to 2^31 - 1, the mote and the epoch alone."""
    mote, epoch = attribute(BY_NAME["nodeid"]), attribute(BY_NAME["epoch"])
    drawn = hash_of(subtract(hash_of(subtract(mote, number(seed, 0))), epoch))
    below = modulo(drawn, number(10**RANDOM_DIGITS, 0))
    return replace(below, digits=RANDOM_DIGITS, unit=PLAIN, final=("named", f"random({seed})"))


def hypotenuse(a: Expr, b: Expr) -> Expr:
    """``sqrt(a * a + b * b)``, rounded."""
    a, b = align(a, b)
    high = math.isqrt(_checked(_magnitude(a) ** 2 + _magnitude(b) ** 2)) + 1
    return _number(Op.HYPOT, (a, b), a.digits, 0, high, _sum_unit(a, b))


def rounded_hypotenuse(a: int, b: int) -> int:
    """``sqrt(a * a + b * b)`` rounded, as a mote does."""
    square = a * a + b * b
    root = math.isqrt(square)
    return root + (square - root * root > root)


def rounded_quotient(a: int, b: int) -> int:
    """``a / b`` rounded half away from zero, as a mote does."""
    quotient, rest = divmod(abs(a), abs(b))
    quotient += rest >= abs(b) - rest
    return quotient if (a < 0) == (b < 0) else -quotient


def _magnitude(a: Expr) -> int:
    return max(abs(a.low), abs(a.high))


def _checked(value: int) -> int:
    if abs(value) > INT64_MAXIMUM:
        raise MagnitudeError(f"may reach {decimal_text(abs(value), 0)[:1]}e{len(str(abs(value))) - 1}")
    return value


def _sum_unit(a: Expr, b: Expr) -> str:
    return sum_unit(a.unit, b.unit)


def _product_unit(a: Expr, b: Expr) -> str:
    return product_unit(a.unit, b.unit)


def _quotient_unit(a: Expr, b: Expr) -> str:
    return product_unit(a.unit, b.unit, -1)


def _number(
    op: Op, args: tuple[Expr, ...], digits: int, low: int, high: int, unit: str, operand: int | None = None
) -> Expr:
    _checked(low)
    _checked(high)
    if any(argument.kind is Kind.NULL for argument in args):
        return null()
    return _folded(Expr(op, args, operand, digits, low, high, Kind.NUMBER, unit))


def _condition(op: Op, args: tuple[Expr, ...]) -> Expr:
    return _folded(Expr(op, args, None, 0, 0, 1, Kind.CONDITION, PLAIN))


def _folded(expr: Expr) -> Expr:
    """The constant that a number of constants only is; everything else as it is."""
    if expr.kind is not Kind.NUMBER or not expr.args or not all(a.is_constant for a in expr.args):
        return expr
    value = apply_number(expr.op, expr.operand or 0, [a.operand or 0 for a in expr.args])
    return null() if value is None else number(value, expr.digits, expr.unit)


def apply_number(op: Op, power: int, values: list[int]) -> int | None:
    """One arithmetic opcode over integers that are not NULL, without a limit of bits; None: NULL."""
    a, b = values[0], values[-1]
    factor: int = 10**power
    if op in (Op.DIV, Op.MOD) and b == 0:
        return None
    operations: dict[Op, Callable[[], int]] = {
        Op.ADD: lambda: a + b,
        Op.SUB: lambda: a - b,
        Op.MUL: lambda: rounded_quotient(a * b, factor),
        Op.DIV: lambda: rounded_quotient(a * factor, b),
        Op.MOD: lambda: (abs(a) % abs(b)) * (-1 if a < 0 else 1),
        Op.NEG: lambda: -a,
        Op.HYPOT: lambda: rounded_hypotenuse(a, b),
        Op.ABS: lambda: abs(a),
        Op.HASH: lambda: hashed(a),
        Op.UPSCALE: lambda: a * factor,
        Op.DOWNSCALE: lambda: rounded_quotient(a, factor),
    }
    return operations[op]()
