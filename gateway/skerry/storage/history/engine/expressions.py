"""Typed expressions as SQL over scaled integers, with the values that :mod:`skerry.expressions.evaluate` gives.

What is written is a tree of sqlglot's, which makes DuckDB's text or Spark's of it: nothing here is said differently in the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from skerry.expressions.expression import LIKE, TEXT_LEAF, TIME_LEAF, Expr, Kind
from skerry.planner.model.row_time import TIME
from skerry.storage.history.layout import READINGS
from skerry_protocol.attributes import BY_NAME, BY_NUMBER
from skerry_protocol.bytecode import HASH_FACTORS, HASH_SHIFTS, Op

Node = exp.Expr
BIGINT, DOUBLE, WIDE = (exp.DataType.build(name) for name in ("BIGINT", "DOUBLE", "DECIMAL(38, 0)"))
#: The relation of the past's rows: see :mod:`skerry.storage.history.engine.sources`.
PAST = "past"
#: The same in two: rows of which each is the only one of its mote in its epoch, and others.
ALONE, OTHERS = "alone", "others"
#: What tells of each row which one it is and when it was sampled: number in the log, session of the root, network time in ms, UTC in us.
ROW, SESSION, NETWORK_MS, TIME_US = "row", "session", "network_ms", "time_us"
_EPOCH, _VIA = BY_NAME["epoch"].number, BY_NAME["via"].number
_KEPT = frozenset({entry.name for entry in READINGS} | {"nodeid", "combined", "left_out"})
#: Decimal places of columns, which files have as floating-point numbers.
_DIGITS = {entry.name: entry.digits for entry in READINGS if entry.digits}
_COMPARISONS: dict[Op, type[exp.Binary]] = {
    Op.EQ: exp.EQ, Op.NE: exp.NEQ, Op.LT: exp.LT, Op.LE: exp.LTE, Op.GT: exp.GT, Op.GE: exp.GTE,
}  # fmt: skip
_TRUTHS = (*_COMPARISONS, Op.AND, Op.OR, Op.NOT, Op.IS_NULL)
#: By which half of a last place a constant is moved that a floating-point number is compared with.
_HALVES = {Op.GT: 1, Op.LE: 1, Op.GE: -1, Op.LT: -1}
#: Constants up to this one are compared with floating-point numbers.
_EXACT = 2**40


@dataclass(frozen=True)
class Term:
    """A value of each row. ``layer``: of how many layers of :class:`Relation` it needs the columns."""

    node: Node
    layer: int = 0


def column(name: str) -> Node:
    """A column of the relation."""
    return exp.column(name, quoted=True)


def relation(name: str) -> exp.Expr:
    """A relation by its name."""
    return exp.to_identifier(name, quoted=True)


def leaf_name(leaf: Expr) -> str:
    """The column that has what an expression reads of a table: as texts, or as integers of so many decimal places."""
    called, name = leaf.final[1:3]
    return f"{called}.{name}.{'text' if leaf.kind is Kind.TEXT else leaf.digits}"


def integer(value: int) -> Node:
    """A constant."""
    literal = exp.Literal.number(abs(value))
    # Which type a literal has goes by its size.
    typed = exp.cast(literal, BIGINT.copy())
    return exp.Neg(this=typed) if value < 0 else typed


def cast(node: Node, kind: exp.DataType) -> Node:
    """A value as one of another type."""
    return exp.Cast(this=node, to=kind.copy())


def both(make: type[exp.Binary], left: Node, right: Node) -> Node:
    """An operator between two values."""
    return make(this=exp.paren(left, copy=False), expression=exp.paren(right, copy=False))


def is_null(node: Node) -> Node:
    """Whether a value is NULL."""
    return exp.Is(this=exp.paren(node, copy=False), expression=exp.Null())


def choose(condition: Node, then: Node, otherwise: Node) -> Node:
    """One of two values."""
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def floored(node: Node, divisor: int) -> Node:
    """A value, not negative, divided by a whole number and rounded down."""
    return node if divisor == 1 else both(exp.IntDiv, node, integer(divisor))


def scaled(name: str) -> Node:
    """A column in the integers that motes sent."""
    digits = _DIGITS.get(name)
    if digits is None:
        return column(name)
    factor = exp.Literal.number(f"1e{digits}")
    return cast(exp.Round(this=both(exp.Mul, column(name), factor)), BIGINT)


def columns_of(attributes: Sequence[int]) -> list[str]:
    """The columns that attributes are read from."""
    names = [BY_NUMBER[number].name for number in attributes if number in BY_NUMBER]
    return sorted(_KEPT & set(names))


def rows_utc_ms() -> Node:
    """When each row was sampled, UTC in ms."""
    return floored(column(TIME_US), 1000)


class Relation:
    """Rows of the past with further columns: a layer of them after the other, as what is used several times is computed once."""

    def __init__(self, period_ms: int, source: exp.Expr | None = None) -> None:
        """``period_ms``: of the query's epochs; ``source``: what the rows are read from, None: the past."""
        self._period_ms = period_ms
        self._source = relation(PAST) if source is None else source
        self._layers: list[dict[str, Node]] = []
        self._names: dict[str, tuple[str, int]] = {}
        self._conditions: list[Term] = []

    # ---- columns ----

    def let(self, term: Term) -> Term:
        """The same value as a column, which costs nothing to name again."""
        if isinstance(term.node, exp.Column | exp.Cast) and _is_plain(term.node):
            return term
        text = term.node.sql()
        if text not in self._names:
            name = f"x{len(self._names)}"
            while len(self._layers) <= term.layer:
                self._layers.append({})
            self._layers[term.layer][name] = term.node
            self._names[text] = name, term.layer + 1
        name, layer = self._names[text]
        return Term(column(name), layer)

    def where(self, term: Term) -> None:
        """Keep rows for which a condition is true."""
        self._conditions.append(term)

    def select(self, columns: Sequence[tuple[str, Node]]) -> exp.Select:
        """Columns of the rows that are kept, all of them there: their terms have been made by this relation."""
        conditions = [term.node for term in self._conditions if not term.layer]
        query = exp.select("*").from_(self._source)
        for condition in conditions:
            query = query.where(condition, copy=False)
        for number, layer in enumerate(self._layers, 1):
            made = [exp.alias_(node, name, quoted=True) for name, node in layer.items()]
            query = exp.select("*", *made).from_(query.subquery(f"l{number}", copy=False))
            for term in self._conditions:
                # Columns of this layer can be named outside only.
                if term.layer == number:
                    query = exp.select("*").from_(query.subquery(f"w{number}", copy=False)).where(term.node)
        chosen = [exp.alias_(node, name, quoted=True) for name, node in columns]
        if not self._layers:
            return query.select(*chosen, append=False, copy=False)
        return exp.select(*chosen).from_(query.subquery("rows", copy=False))

    # ---- expressions ----

    def truth(self, expr: Expr) -> Term:
        """A condition as TRUE, FALSE or NULL."""
        if expr.op in _TRUTHS and not expr.is_attribute:
            return self._condition(expr)
        term = self.number(expr)
        return Term(both(exp.NEQ, term.node, integer(0)), term.layer)

    def number(self, expr: Expr) -> Term:
        """An expression's integer; of a condition 0 or 1, of a text itself. Raises KeyError for what the past does not have."""
        if expr.op in _TRUTHS and expr.args:
            term = self._condition(expr)
            return Term(cast(term.node, BIGINT), term.layer)
        if expr.is_constant and expr.operand is not None:
            return Term(integer(expr.operand))
        if expr.op is Op.NULL or expr.is_attribute:
            return Term(self._leaf(expr))
        if not expr.args or expr.aggregate or expr.kind is Kind.TEXT:
            raise KeyError(f"the past has no column for {expr}")
        return self._computed(expr)

    def folded(self, expr: Expr) -> tuple[Term, Callable[[Node], Node]]:
        """What MIN, MAX and COUNT take in place of an expression's integer, and how that is made of what they give: integers are made of
        groups, not of rows, where that comes to the same."""
        name = BY_NUMBER[expr.operand].name if expr.is_attribute and expr.operand in BY_NUMBER else ""
        if name not in _DIGITS:
            return self.number(expr), lambda node: node
        factor = exp.Literal.number(f"1e{_DIGITS[name]}")
        return Term(column(name)), lambda node: cast(
            exp.Round(this=both(exp.Mul, node, factor.copy())), BIGINT
        )

    def _leaf(self, expr: Expr) -> Node:
        if expr.final[:1] == (TEXT_LEAF,):
            return exp.Literal.string(str(expr.final[1]))
        if expr.final[:1] == ("table",):
            return column(leaf_name(expr))
        if expr.final[:1] == (TIME_LEAF,):
            return rows_utc_ms() if expr == TIME else column(NETWORK_MS)
        if expr.op is Op.NULL:
            return cast(exp.Null(), BIGINT)
        if expr.operand is None:
            raise KeyError(f"the past has no column for {expr}")
        return self._attribute(expr.operand)

    def _attribute(self, number: int) -> Node:
        if number == _EPOCH:
            return floored(column(NETWORK_MS), self._period_ms)
        if number == _VIA:
            # As skerry.streams.stream.roots_of.
            return exp.Mod(
                this=exp.paren(floored(column(SESSION), 1 << 16), copy=False), expression=integer(1 << 16)
            )
        entry = BY_NUMBER.get(number)
        if entry is None or entry.name not in _KEPT:
            # Nobody asked for it then.
            return cast(exp.Null(), BIGINT)
        return scaled(entry.name)

    def _condition(self, expr: Expr) -> Term:
        if expr.op is Op.IS_NULL:
            [argument] = expr.args
            term = self.truth(argument) if argument.kind is Kind.CONDITION else self.number(argument)
            return Term(is_null(term.node), term.layer)
        if expr.op in (Op.AND, Op.OR, Op.NOT):
            terms = [self.truth(argument) for argument in expr.args]
            layer = max(term.layer for term in terms)
            if expr.op is Op.NOT:
                return Term(exp.Not(this=exp.paren(terms[0].node, copy=False)), layer)
            make = exp.And if expr.op is Op.AND else exp.Or
            return Term(both(make, terms[0].node, terms[-1].node), layer)
        direct = _against_constant(expr)
        if direct is not None:
            return Term(direct)
        left, right = (self.number(argument) for argument in expr.args)
        if expr.final == (LIKE,):
            like = exp.Like(this=left.node, expression=right.node)
            escaped = exp.Escape(this=like, expression=exp.Literal.string("\\"))
            return Term(escaped, max(left.layer, right.layer))
        return Term(both(_COMPARISONS[expr.op], left.node, right.node), max(left.layer, right.layer))

    def _computed(self, expr: Expr) -> Term:
        a, b = self.number(expr.args[0]), self.number(expr.args[-1])
        if expr.op is Op.HYPOT:
            return self._hypotenuse(a, b)
        if expr.op is Op.HASH:
            return self._hash(a)
        factor = Term(integer(10 ** (expr.operand or 0)))
        if expr.op is Op.DOWNSCALE:
            return self._quotient(a, factor)
        layer = max(a.layer, b.layer)
        if expr.op is Op.MUL:
            product = Term(both(exp.Mul, a.node, b.node), layer)
            return self._quotient(product, factor) if expr.operand else product
        if expr.op is Op.DIV:
            return self._quotient(Term(both(exp.Mul, a.node, factor.node), a.layer), b)
        simple: dict[Op, Callable[[], Node]] = {
            Op.ADD: lambda: both(exp.Add, a.node, b.node),
            Op.SUB: lambda: both(exp.Sub, a.node, b.node),
            Op.ABS: lambda: exp.Abs(this=a.node),
            Op.NEG: lambda: exp.Neg(this=exp.paren(a.node, copy=False)),
            Op.UPSCALE: lambda: both(exp.Mul, a.node, factor.node),
            Op.MOD: lambda: both(exp.Mod, a.node, exp.Nullif(this=b.node, expression=integer(0))),
        }
        if expr.op not in simple:
            raise KeyError(f"the past has no column for {expr}")
        return Term(simple[expr.op](), layer)

    def _quotient(self, a: Term, b: Term) -> Term:
        """``a / b`` rounded half away from zero; NULL where b is 0."""
        a, b = self.let(a), self.let(b)
        divisor = exp.Nullif(this=exp.Abs(this=b.node.copy()), expression=integer(0))
        layer = max(a.layer, b.layer)
        size = exp.Abs(this=a.node.copy())
        whole = self.let(Term(both(exp.IntDiv, size, divisor), layer))
        rest = self.let(Term(both(exp.Mod, size.copy(), divisor.copy()), layer))
        up = both(exp.GTE, rest.node, both(exp.Sub, divisor.copy(), rest.node.copy()))
        rounded = both(exp.Add, whole.node, choose(up, integer(1), integer(0)))
        same = both(exp.EQ, both(exp.LT, a.node.copy(), integer(0)), both(exp.LT, b.node.copy(), integer(0)))
        negative = exp.Neg(this=exp.paren(rounded.copy(), copy=False))
        return Term(choose(same, rounded, negative), max(whole.layer, rest.layer, layer))

    def _hash(self, a: Term) -> Term:
        """:func:`skerry_protocol.bytecode.hashed`, in products of at most 48 bits: an overflow of 64 is an error in SQL."""
        a = self.let(a)
        shifted = both(exp.Add, both(exp.Mod, a.node, integer(1 << 32)), integer(1 << 32))
        x = Term(both(exp.Mod, shifted, integer(1 << 32)), a.layer)
        for shift, factor in zip(HASH_SHIFTS, (*HASH_FACTORS, None), strict=True):
            x = self.let(x)
            x = Term(
                both(exp.BitwiseXor, x.node, both(exp.IntDiv, x.node.copy(), integer(1 << shift))), x.layer
            )
            if factor is not None:
                x = self.let(x)
                high = both(exp.Mod, both(exp.Mul, x.node, integer(factor >> 16)), integer(1 << 16))
                low = both(exp.Mul, x.node.copy(), integer(factor & 0xFFFF))
                whole = both(exp.Add, both(exp.Mul, high, integer(1 << 16)), low)
                x = Term(both(exp.Mod, whole, integer(1 << 32)), x.layer)
        return Term(both(exp.Mod, x.node, integer(1 << 31)), x.layer)

    def _hypotenuse(self, a: Term, b: Term) -> Term:
        """``sqrt(a * a + b * b)``, rounded; exact, though the root of a floating-point number is not."""
        a, b = self.let(a), self.let(b)
        squares = [both(exp.Mul, side.node, side.node.copy()) for side in (a, b)]
        square = self.let(Term(both(exp.Add, *squares), max(a.layer, b.layer)))
        near = cast(exp.Floor(this=exp.Sqrt(this=cast(square.node, DOUBLE))), BIGINT)
        root = self.let(Term(near, square.layer))

        def corrected(of: Term, condition: Callable[[Node, Node], Node], by: int) -> Term:
            found = choose(condition(of.node, square.node.copy()), integer(by), integer(0))
            return self.let(Term(both(exp.Add, of.node.copy(), found), of.layer))

        def product(node: Node, more: int) -> Node:
            side = both(exp.Add, node.copy(), integer(more)) if more else node
            return both(exp.Mul, side, side.copy())

        root = corrected(root, lambda r, s: both(exp.GT, product(r, 0), s), -1)
        root = corrected(root, lambda r, s: both(exp.LTE, product(r, 1), s), 1)
        return corrected(root, lambda r, s: both(exp.GT, both(exp.Sub, s, product(r, 0)), r.copy()), 1)


def _is_plain(node: Node) -> bool:
    """Whether it is a column or a constant."""
    return isinstance(node, exp.Column) or (isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal))


def _against_constant(expr: Expr) -> Node | None:
    """A comparison of an attribute with a constant, where files have the attribute as a floating-point number: with that itself, whose
    least and greatest in each row group are known. A constant half a last place beside the one that is meant tells the same apart."""
    if expr.op not in _HALVES:
        return None
    left, right = expr.args
    if not (left.is_attribute and right.is_constant and left.operand in BY_NUMBER):
        return None
    name = BY_NUMBER[left.operand].name
    constant = right.operand or 0
    if name not in _DIGITS or left.digits != _DIGITS[name] or abs(constant) > _EXACT:
        return None
    middle = (2 * constant + _HALVES[expr.op]) / (2 * 10 ** _DIGITS[name])
    literal = exp.Literal.number(f"{abs(middle):.17e}")
    signed = exp.Neg(this=literal) if middle < 0 else literal
    return both(_COMPARISONS[expr.op], column(name), signed)
