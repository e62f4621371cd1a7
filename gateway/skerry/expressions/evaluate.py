"""Evaluates typed expressions over whole columns: int64 values with a mask of what is not NULL.

The opcodes mean what they mean on a mote; bounds known to the planner keep every value in 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skerry.expressions.build import QUOTIENT_DIGITS
from skerry.expressions.expression import LIKE, TEXT_LEAF, TIME_LEAF, Expr, attributes_of, is_of_texts
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.bytecode import HASH_FACTORS, HASH_SHIFTS, Op

Values = NDArray[np.int64]
Mask = NDArray[np.bool_]
#: Values, and where they are known (not NULL). Values that are not known are anything.
Vector = tuple[Values, Mask]

_EPOCH = BY_NAME["epoch"].number
_NETWORK_TIME = TIME_LEAF, "network_time"
#: Expressions whose values a batch remembers: as many users as there may be, its memory has a bound.
REMEMBERED = 64


class Evaluator:
    """Expressions over one batch; what many users ask for is computed once.

    ``columns`` gives what the batch brings, by expression: attributes, expressions that motes computed,
    aggregates. ``sample_ms`` is each row's sample time, from which users' epochs come. ``texts``: columns of texts, which
    can be compared.
    """

    def __init__(
        self, columns: Mapping[Expr, Vector], sample_ms: Values, texts: Mapping[Expr, pa.Array] | None = None
    ) -> None:
        self._brought = dict(columns)
        self._texts = dict(texts or {})
        #: By expression, and the period for one that depends on it.
        self._computed: dict[tuple[Expr, int | None], Vector] = {}
        self.sample_ms = sample_ms

    def __call__(self, expr: Expr, period_ms: int) -> Vector:
        """The expression for each row, for a user of this period. An attribute that the batch lacks is NULL: nobody asked
        for it then. Raises KeyError for anything else that it lacks."""
        found = self._brought.get(expr)
        if found is not None:
            return found
        key = expr, period_ms if _EPOCH in attributes_of(expr) else None
        found = self._computed.get(key)
        if found is None:
            found = self._compute(expr, period_ms)
            if len(self._computed) < REMEMBERED:
                self._computed[key] = found
        return found

    def brings(self, expr: Expr) -> bool:
        """Whether the batch brings the expression itself."""
        return expr in self._brought

    def add(self, expr: Expr, vector: Vector) -> None:
        """One more expression that the batch brings."""
        self._brought[expr] = vector

    def add_texts(self, expr: Expr, texts: pa.Array) -> None:
        """One more column of texts. Asked for itself, it only says which are known, where nothing else stands for them."""
        known: Mask = texts.is_valid().to_numpy(zero_copy_only=False)
        self._texts[expr] = texts
        self._brought.setdefault(expr, (np.zeros(len(texts), np.int64), known))

    def at(self, places: Values) -> Evaluator:
        """The same for some rows only, in this order. Other threads may ``add`` meanwhile."""
        columns = {
            expr: (values[places], known[places]) for expr, (values, known) in self._brought.copy().items()
        }
        texts = {expr: column.take(pa.array(places)) for expr, column in self._texts.copy().items()}
        return Evaluator(columns, self.sample_ms[places], texts)

    def truth(self, expr: Expr | None, period_ms: int) -> Mask:
        """Where a condition is true; None is true everywhere."""
        if expr is None:
            return np.ones(len(self.sample_ms), np.bool_)
        values, known = self(expr, period_ms)
        true: Mask = known & (values != 0)
        return true

    def _when(self, expr: Expr, period_ms: int) -> Values:
        """The user's epoch, or network time."""
        if expr.final[:1] != (TIME_LEAF,):
            return self.sample_ms // period_ms
        if expr.final != _NETWORK_TIME:
            raise KeyError(f"this batch does not say {expr}")
        return self.sample_ms

    def _compute(self, expr: Expr, period_ms: int) -> Vector:
        rows = len(self.sample_ms)
        if expr.is_constant:
            return np.full(rows, expr.operand, np.int64), np.ones(rows, np.bool_)
        if expr.op is Op.NULL:
            return np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
        if expr.final[:1] == (TIME_LEAF,) or (expr.is_attribute and expr.operand == _EPOCH):
            return self._when(expr, period_ms), np.ones(rows, np.bool_)
        if expr.is_attribute:
            for brought, vector in self._brought.copy().items():
                # The value of an event, which its query reads as another attribute's.
                if brought.is_attribute and brought.operand == expr.operand:
                    return vector
            return np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
        if not expr.args or expr.aggregate:
            raise KeyError(f"this stream has no column for {expr}")
        vectors = [] if is_of_texts(expr) else [self(argument, period_ms) for argument in expr.args]
        return _apply(expr, vectors) if vectors else self._of_texts(expr)

    def _of_texts(self, expr: Expr) -> Vector:
        """A comparison of texts. Raises KeyError for a column that it lacks."""
        left, right = (
            pa.scalar(str(side.final[1]), pa.string())
            if side.final[:1] == (TEXT_LEAF,)
            else self._texts[side]
            for side in expr.args
        )
        like = expr.final == (LIKE,)
        found = pc.match_like(left, right.as_py()) if like else _TEXTUAL[expr.op](left, right)
        known: Mask = found.is_valid().to_numpy(zero_copy_only=False)
        return found.fill_null(False).cast(pa.int64()).to_numpy(zero_copy_only=False), known


#: Comparisons of texts, which are by their bytes in UTF-8: in the order of code points.
_TEXTUAL: dict[Op, Callable[..., pa.Array]] = {
    Op.EQ: pc.equal, Op.NE: pc.not_equal, Op.LT: pc.less, Op.LE: pc.less_equal, Op.GT: pc.greater, Op.GE: pc.greater_equal,
}  # fmt: skip


def _apply(expr: Expr, vectors: list[Vector]) -> Vector:
    (a, a_known), (b, b_known) = vectors[0], vectors[-1]
    if expr.op is Op.IS_NULL:
        return (~a_known).astype(np.int64), np.ones_like(a_known)
    if expr.op in (Op.AND, Op.OR):
        return _connect(expr.op is Op.OR, vectors[0], vectors[-1])
    known = a_known & b_known
    if expr.op in (Op.DIV, Op.MOD):
        known = known & (b != 0)
        b = np.where(known, b, 1)
        a = np.where(known, a, 0)
    return _NUMERIC[expr.op](a, b, 10 ** (expr.operand or 0)).astype(np.int64), known


def _connect(deciding: bool, left: Vector, right: Vector) -> Vector:
    """AND and OR: the deciding truth (false for AND, true for OR) wins over NULL."""
    (a, a_known), (b, b_known) = left, right
    decided = (a_known & ((a != 0) == deciding)) | (b_known & ((b != 0) == deciding))
    return np.where(decided, int(deciding), int(not deciding)), decided | (a_known & b_known)


def rounded_quotients(a: Values, b: Values) -> Values:
    """``a / b`` rounded half away from zero; b is nowhere 0."""
    divisor = np.abs(b)
    quotient, rest = np.divmod(np.abs(a), divisor)
    quotient += rest >= divisor - rest
    return np.where((a < 0) == (b < 0), quotient, -quotient)


def averages(sums: Values, counts: Values) -> Values:
    """``sums / counts`` in units of a quotient's last digit, rounded half away from zero; by 0 readings: anything. Sums may take all
    64 bits."""
    scale, divisor = 10**QUOTIENT_DIGITS, np.maximum(counts, 1)
    whole, rest = np.divmod(sums, divisor)
    # Towards zero, so that what is left is rounded away from it.
    below = (sums < 0) & (rest > 0)
    whole, rest = whole + below, rest - np.where(below, divisor, 0)
    found: Values = whole * scale + rounded_quotients(rest * scale, divisor)
    return found


def _hypotenuses(a: Values, b: Values) -> Values:
    """``sqrt(a * a + b * b)``, rounded; exact, though the square root of a float64 is not."""
    square = a * a + b * b
    root = np.sqrt(square.astype(np.float64)).astype(np.int64)
    root -= root * root > square
    root += (root + 1) * (root + 1) <= square
    root += square - root * root > root
    return root


def _hashes(values: Values) -> Values:
    """:func:`skerry_protocol.bytecode.hashed` of each."""
    x = values.astype(np.uint64) & np.uint64(0xFFFFFFFF)
    for shift, factor in zip(HASH_SHIFTS, (*HASH_FACTORS, 1), strict=True):
        x = (x ^ x >> np.uint64(shift)) * np.uint64(factor) & np.uint64(0xFFFFFFFF)
    return (x & np.uint64(0x7FFFFFFF)).astype(np.int64)


def _scaled_down(values: Values, factor: int) -> Values:
    return values if factor == 1 else rounded_quotients(values, np.full(1, factor, np.int64))


_NUMERIC: dict[Op, Callable[[Values, Values, int], NDArray[np.generic]]] = {
    Op.ADD: lambda a, b, _: a + b,
    Op.SUB: lambda a, b, _: a - b,
    Op.MUL: lambda a, b, factor: _scaled_down(a * b, factor),
    Op.DIV: lambda a, b, factor: rounded_quotients(a * factor, b),
    Op.MOD: lambda a, b, _: np.fmod(a, b),
    Op.NEG: lambda a, _b, _: -a,
    Op.HYPOT: lambda a, b, _: _hypotenuses(a, b),
    Op.ABS: lambda a, _b, _: np.abs(a),
    Op.HASH: lambda a, _b, _: _hashes(a),
    Op.UPSCALE: lambda a, _b, factor: a * factor,
    Op.DOWNSCALE: lambda a, _b, factor: _scaled_down(a, factor),
    Op.EQ: lambda a, b, _: a == b,
    Op.NE: lambda a, b, _: a != b,
    Op.LT: lambda a, b, _: a < b,
    Op.LE: lambda a, b, _: a <= b,
    Op.GT: lambda a, b, _: a > b,
    Op.GE: lambda a, b, _: a >= b,
    Op.NOT: lambda a, _b, _: a == 0,
}
