"""Typed expressions: trees of the motes' own opcodes over scaled integers.

Each node knows its decimal digits (its SI value is ``integer * 10**-digits``), its unit and the bounds
of its integer. The same tree is assembled to bytecode (:mod:`skerry.expressions.assembler`) and evaluated at
the gateway (:mod:`skerry.expressions.evaluate`), so that both places give identical values. Motes compute in
32 bits, the gateway in 64; a node whose bounds leave 32 bits runs at the gateway only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from skerry.expressions import extension_aggregates
from skerry.sql.quoting import as_name, as_text
from skerry.sql.units import duration_text
from skerry_protocol.attributes import BY_NUMBER
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate

#: Unit of a plain number: it takes the unit of what it is compared with or added to.
PLAIN = "number"
#: How the name of the finer part of a stored row's time ends.
MILLISECONDS = ", milliseconds"
#: Unit of what a table holds, of which nobody knows one: comparable with anything.
MIXED = "mixed"
#: How ``final`` of a row's own times begins.
TIME_LEAF = "time"
#: How ``final`` of a constant text begins, and that of a LIKE.
TEXT_LEAF, LIKE = "text", "like"


class Kind(Enum):
    """What an expression yields."""

    NUMBER = "number"
    CONDITION = "condition"
    NULL = "null"
    LIST = "list"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Expr:
    """One node. ``operand``: a constant's integer, an attribute's number, or a power of ten.

    A node with ``aggregate`` set is a leaf for evaluation: the aggregate over ``args`` (none: COUNT(*))
    as the network delivered it, a state of ``cells``; ``final`` says what is made of the state where that
    is not the only thing one can make of it. ``low`` and ``high`` bound the integer, both inclusive.
    """

    op: Op
    args: tuple[Expr, ...] = ()
    operand: int | None = None
    digits: int = 0
    low: int = 0
    high: int = 1
    kind: Kind = Kind.CONDITION
    unit: str = field(default=PLAIN, compare=False)
    aggregate: Aggregate = Aggregate.NONE
    cells: int = 1
    final: tuple[str | int, ...] = ()
    #: What users call an attribute, where that is not what motes call it.
    label: str = field(default="", compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Much is known by expression, and an expression's hash would be made of its whole tree each time.
        own = (self.op, self.args, self.operand, self.digits, self.low, self.high)
        object.__setattr__(self, "_hash", hash((*own, self.kind, self.aggregate, self.cells, self.final)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process texts have other hashes.
        own = (self.op, self.args, self.operand, self.digits, self.low, self.high)
        return Expr, (*own, self.kind, self.unit, self.aggregate, self.cells, self.final, self.label)

    @property
    def is_constant(self) -> bool:
        """A number known now (not NULL)."""
        return self.op is Op.CONST32

    @property
    def is_attribute(self) -> bool:
        """An attribute itself, no aggregate."""
        return self.op is Op.ATTR and self.aggregate is Aggregate.NONE

    def walk(self) -> Iterator[Expr]:
        """This node and all below it, aggregates' arguments included."""
        yield self
        for argument in self.args:
            yield from argument.walk()

    def to_list(self) -> list[Any]:
        """For JSON; see :func:`from_list`."""
        return [self.op.name, self.operand, self.digits, self.low, self.high, self.kind.value, self.unit,
                int(self.aggregate), [argument.to_list() for argument in self.args], self.cells, list(self.final), self.label]  # fmt: skip


def from_list(data: list[Any]) -> Expr:
    """The expression that :meth:`Expr.to_list` wrote."""
    op, operand, digits, low, high, kind, unit, aggregate, args, cells, final, label = data
    return Expr(Op[op], tuple(from_list(argument) for argument in args), operand, digits, low, high,
                Kind(kind), unit, Aggregate(aggregate), cells, tuple(final), label)  # fmt: skip


@lru_cache(maxsize=65536)
def attributes_of(expr: Expr) -> frozenset[int]:
    """Numbers of the attributes read, in aggregates' arguments too."""
    return frozenset(node.operand for node in expr.walk() if node.is_attribute and node.operand is not None)


def depth_of(expr: Expr) -> int:
    """Operators within each other, at most; whatever their number is, this does not run out of stack."""
    depth, level = 0, [expr]
    while level:
        depth, level = depth + 1, [argument for node in level for argument in node.args]
    return depth


def never_changes(expr: Expr) -> bool:
    """Whether a mote's answer is always the same: nothing in it is sampled or changes."""
    return all(BY_NUMBER[number].constant for number in attributes_of(expr))


def is_of_texts(expr: Expr) -> bool:
    """Whether it compares texts."""
    return expr.kind is Kind.CONDITION and len(expr.args) == 2 and expr.args[0].kind is Kind.TEXT


def conjuncts(expr: Expr | None) -> list[Expr]:
    """The conditions that AND joins; [] for None."""
    if expr is None:
        return []
    if expr.op is Op.AND:
        return [part for argument in expr.args for part in conjuncts(argument)]
    return [expr]


_SYMBOL = {
    Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/", Op.MOD: "%", Op.EQ: "=", Op.NE: "<>", Op.LT: "<",
    Op.LE: "<=", Op.GT: ">", Op.GE: ">=", Op.AND: "AND", Op.OR: "OR",
}  # fmt: skip


_FUNCTIONS = {Op.HYPOT: "hypot", Op.ABS: "abs", Op.HASH: "hash"}


def decimal_text(value: int, digits: int) -> str:
    """``integer * 10**-digits`` without superfluous zeros: (2550, 2) → ``25.5``."""
    if digits == 0:
        return str(value)
    whole, rest = divmod(abs(value), 10**digits)
    text = f"{whole}.{rest:0{digits}d}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 else text


def render(expr: Expr) -> str:
    """The expression as query text in SI numbers, for people."""
    if expr.aggregate is not Aggregate.NONE:
        return _render_aggregate(expr)
    if not expr.args or _is_time(expr) or expr.final[:1] == ("named",):
        return _render_leaf(expr)
    if expr.op in (Op.UPSCALE, Op.DOWNSCALE):
        return render(expr.args[0])
    if expr.op in (*_FUNCTIONS, Op.CHANGES) or expr.final == ("where",):
        return _render_made(expr)
    inner = [f"({render(a)})" if _is_binary(a) else render(a) for a in expr.args]
    if len(inner) == 2:
        symbol = "LIKE" if expr.final == (LIKE,) else _SYMBOL[expr.op]
        return f"{inner[0]} {symbol} {inner[1]}"
    return {Op.NOT: "NOT {}", Op.NEG: "-{}", Op.IS_NULL: "{} IS NULL"}[expr.op].format(inner[0])


def _render_made(expr: Expr) -> str:
    """Functions, and what the planner makes of more than one part."""
    inside = ", ".join(map(render, expr.args))
    if expr.op in _FUNCTIONS:
        return f"{_FUNCTIONS[expr.op]}({inside})"
    if expr.op is Op.CHANGES:
        return f"{inside} can change its {expr.final[-1]}"
    # Of what is aggregated, or of COUNT(*)'s rows, those for which a condition is true.
    what, there = ("*", expr) if expr.op is Op.DIV else (render(expr.args[0]), expr.args[1])
    return f"{what} where {render(there.args[1])}"


def _render_aggregate(expr: Expr) -> str:
    inner = render(expr.args[0]) if expr.args else "*"
    match expr.final:
        case ("window", int(length), int(slide)):
            since = duration_text(length) if length else "start"
            inner = f"{inner}, {since}" if slide == length else f"{inner}, {since}, {duration_text(slide)}"
        case ("stddev",):
            return f"STDDEV({inner})"
        case ("quantile" | "quantile error" as what, int(share), _, int(middle)):
            # Motes summarise what is left of the middle of all that the value can be.
            inner = render(expr.args[0].args[0]) if middle and expr.args[0].args else inner
            name = f"QUANTILE({inner}, {decimal_text(share, 6)})"
            return name if what == "quantile" else f"ERROR({name})"
        case ("distinct" | "distinct error" as what,):
            name = f"COUNT(DISTINCT {inner})"
            return name if what == "distinct" else f"ERROR({name})"
        case ("ranking",):
            inner = f"{expr.cells}, {inner}"
        case ("temporal", int(low), int(high), _) if expr.aggregate in (Aggregate.DELTA, Aggregate.ADPDELTA):
            inner = f"{decimal_text(low | high << 8, expr.digits)}, {inner}"
        case ("temporal", int(low), int(high), _) if expr.aggregate is Aggregate.PULSES:
            inner = f"{low | high << 8}, {inner}"
        case ("temporal", *_) if expr.aggregate is Aggregate.PULSE:
            pass
        case ("temporal", int(window), int(slide), _, int(period)):
            inner = f"{inner}, {duration_text(window * period)}, {duration_text(slide * period)}"
        case ("temporal", int(window), int(slide), _):
            inner = f"{window}, {inner}" if slide == 1 else f"{window}, {slide}, {inner}"
    return f"{extension_aggregates.name_of(expr.aggregate)}({inner})"


def _is_binary(expr: Expr) -> bool:
    while expr.op in (Op.UPSCALE, Op.DOWNSCALE):
        (expr,) = expr.args
    return len(expr.args) == 2 and not expr.aggregate and not _is_time(expr) and expr.final in ((), (LIKE,))


def _is_time(expr: Expr) -> bool:
    """Whether it is the time of a stored row, one value, which the row has in two parts."""
    part = expr.args[1] if expr.op is Op.ADD else expr
    return part is not expr and part.op is Op.STORED and str(part.final[-1]).endswith(MILLISECONDS)


def _render_leaf(expr: Expr) -> str:
    if _is_time(expr):
        return str(expr.args[1].final[-1]).removesuffix(MILLISECONDS)
    match expr.final:
        case ("table", *parts):
            return ".".join(as_name(str(part)) for part in parts)
        case ("text", text):
            return as_text(str(text))
        case ("time" | "named" | "motes" | "revision" as what, *parts):
            return ".".join(map(str, parts)) or what.upper()
    return _render_number(expr)


def _render_number(expr: Expr) -> str:
    if expr.op is Op.NULL or expr.operand is None:
        return "NULL"
    if expr.op is Op.ATTR:
        return expr.label or BY_NUMBER[expr.operand].name
    if expr.op is Op.STORED:
        return str(expr.final[-1])
    return decimal_text(expr.operand, expr.digits)
