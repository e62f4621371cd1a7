"""Expressions over a table of sensors: names looked up, types checked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.sensors import scalar_calls, time_sums
from skerry.sensors.call_resolver import ShapesOf, call_of, no_shapes
from skerry.sensors.definitions import TIME, Field, SensorTable
from skerry.sensors.found import Found
from skerry.sensors.time_sums import time_sum
from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.units import unit_of

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_PLACES = 9
_CONSTANTS = {"true": True, "false": False}
_CALLED = {
    plans.INT: "a number", plans.DECIMAL: "a number", plans.DOUBLE: "a number", plans.TEXT: "a text", plans.BOOLEAN: "a condition",
    plans.TIMESTAMP: "a time", plans.NULL: "NULL",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Resolver:
    """Of one table under the name that a query gives it. ``shapes``: those that functions over arrays name."""

    table: SensorTable
    called: str
    shapes: ShapesOf = no_shapes

    def condition(self, node: ast.Expression) -> Term:
        """What WHERE says. Raises QueryError."""
        found = self.expression(node).term
        if found.type not in (plans.BOOLEAN, plans.NULL):
            raise QueryError("a number or text is no condition" if found.type != plans.TIMESTAMP else "a time is no condition",
                             "compare it, as in level > 0.5", node.span)  # fmt: skip
        return found

    def expression(self, node: ast.Expression, beside: Found | None = None) -> Found:
        """``beside``: what it is compared with. Raises QueryError."""
        match node:
            case ast.Number():
                found = Found(_number(node, beside))
            case ast.Text():
                found = Found(_text(node, beside))
            case ast.Null():
                found = Found(Term("literal", plans.NULL))
            case ast.Name():
                found = self.constant(node) or self._name(node)
            case ast.Unary():
                found = self._unary(node, beside)
            case ast.Binary():
                found = self._binary(node, beside)
            case ast.Call():
                found = self._call(node)
            case _:
                found = Found(self._test(node))
        return found

    def _call(self, node: ast.Call) -> Found:
        if node.function.upper() in scalar_calls.USAGE:
            return scalar_calls.scalar_of(node, self.expression)
        return Found(call_of(node, self.expression, self.shapes))

    def _test(self, node: ast.IsNull | ast.Between | ast.InList | ast.Like) -> Term:
        match node:
            case ast.IsNull():
                made = Term("IS NULL", plans.BOOLEAN, (self.expression(node.operand).term,))
            case ast.Between():
                low = self._compared(">=", node.operand, node.low, node.span)
                high = self._compared("<=", node.operand, node.high, node.span)
                made = Term("AND", plans.BOOLEAN, (low, high))
            case ast.InList():
                made = self._in(node)
            case ast.Like():
                operand = self.expression(node.operand).term
                _check(operand, plans.TEXT, node.operand.span)
                made = Term("LIKE", plans.BOOLEAN, (operand,), node.pattern.text)
        return Term("NOT", plans.BOOLEAN, (made,)) if node.negated else made

    # ---- names ----

    def constant(self, node: ast.Name) -> Found | None:
        """TRUE and FALSE, where no column is called so."""
        name = node.name.lower()
        if node.table is not None or name not in _CONSTANTS or self.has(name):
            return None
        return Found(Term("literal", plans.BOOLEAN, (), _CONSTANTS[name]))

    def has(self, name: str) -> bool:
        """Whether a column or a field is called so."""
        stream = self.table.stream
        of_stream = stream is not None and any(field.name.lower() == name.lower() for field in stream.fields)
        return of_stream or self.table.place(name) is not None

    def column(self, name: str) -> Term:
        """A column that there is, by its name in batches."""
        place = self.table.place(name)
        assert place is not None
        return Term("column", self.table.columns[place].type, (), name.lower())

    def field(self, field: Field) -> Term:
        """A field of the stream."""
        assert self.table.stream is not None
        return Term("column", field.full_type, (), f"{self.table.stream.name.lower()}.{field.name.lower()}")

    def is_static(self, term: Term) -> bool:
        """Whether it is decided by static columns alone."""
        return all(self.table.place(name) is not None for name in term.columns())

    def _name(self, node: ast.Name) -> Found:
        stream, name, table = self.table.stream, node.name.lower(), (node.table or "").lower()
        names = (self.called, self.table.key)
        if node.stream is not None:
            if table not in names:
                raise QueryError(f"unknown table '{node.table}'", f"it is {self.called}", node.span)
            if stream is None or node.stream.lower() != stream.name.lower():
                has = f"its stream is {stream.name}" if stream is not None else "it has no stream"
                raise QueryError(f"{self.table.name} has no stream '{node.stream}'", has, node.span)
            return self._of_stream(node)
        if table and table not in names:
            if stream is not None and table == stream.name.lower():
                return self._of_stream(node)
            streams = [stream.name] if stream is not None else []
            hint = f"{did_you_mean(table, [*names, *streams])}before a point stands {' or '.join([self.called, *streams])}"
            raise QueryError(f"unknown table '{node.table}'", hint, node.span)
        place = self.table.place(name)
        if place is not None:
            return Found(self.column(name), self.table.columns[place].unit)
        if stream is not None and any(field.name.lower() == name for field in stream.fields):
            return self._of_stream(node)
        if stream is not None and name == TIME:
            return Found(Term("column", plans.TIMESTAMP, (), plans.TIME))
        known = [column.name for column in self.table.columns]
        known += [field.name for field in stream.fields] if stream is not None else []
        hint = f"{did_you_mean(name, known)}{self.table.name} has {', '.join(known)}"
        raise QueryError(f"unknown column '{node.name}'", hint, node.span)

    def _of_stream(self, node: ast.Name) -> Found:
        stream = self.table.stream
        assert stream is not None
        for field in stream.fields:
            if field.name.lower() == node.name.lower():
                return Found(self.field(field), field.unit)
        if node.name.lower() == TIME:
            return Found(Term("column", plans.TIMESTAMP, (), plans.TIME))
        known = [field.name for field in stream.fields]
        hint = f"{did_you_mean(node.name, known)}{stream.name} has {', '.join(known)}"
        raise QueryError(f"unknown field '{node.name}'", hint, node.span)

    # ---- operators ----

    def _unary(self, node: ast.Unary, beside: Found | None) -> Found:
        operand = self.expression(node.operand, beside if node.operator == "-" else None)
        if node.operator == "NOT":
            _check(operand.term, plans.BOOLEAN, node.operand.span)
            return Found(Term("NOT", plans.BOOLEAN, (operand.term,)))
        _check_number(operand.term, node.operand.span)
        if operand.term.op == "literal" and operand.term.value is not None:
            value = operand.term.value
            negative = -value if isinstance(value, int) else str(-Decimal(str(value)))
            return Found(Term("literal", operand.term.type, (), negative), operand.unit)
        return Found(Term("NEGATE", operand.term.type, (operand.term,)), operand.unit)

    def _binary(self, node: ast.Binary, beside: Found | None) -> Found:
        if node.operator in ("AND", "OR"):
            parts = [self.expression(part) for part in ast.operands(node, node.operator)]
            made = parts[0].term
            for part, where in zip(parts, ast.operands(node, node.operator), strict=True):
                _check(part.term, plans.BOOLEAN, where.span)
            for part in parts[1:]:
                made = Term(node.operator, plans.BOOLEAN, (made, part.term))
            return Found(made)
        if node.operator in _COMPARISONS:
            return Found(self._compared(node.operator, node.left, node.right, node.span))
        if node.operator == ">>":
            raise QueryError("'>>' is not for streams", "divide by 2, 4, 8 …", node.span)
        left, right = self._sides(node, beside)
        of_times = time_sum(node, left, right)
        if of_times is not None:
            return of_times
        for side, where in ((left, node.left), (right, node.right)):
            _check_number(side.term, where.span)
        whole = left.term.type == right.term.type == plans.INT and node.operator != "/"
        unit = left.unit or right.unit if node.operator in "+-" else ""
        if node.operator in "+-" and _differ(left.unit, right.unit):
            raise QueryError(f"{left.unit} and {right.unit} are added", "bring both to one unit", node.span)
        return Found(Term(node.operator, plans.INT if whole else plans.DOUBLE, (left.term, right.term)), unit)

    def _sides(self, node: ast.Binary, beside: Found | None) -> tuple[Found, Found]:
        """What is reckoned with; of a sum a literal is in the unit of the other side, or of what the sum is compared with."""
        if node.operator not in "+-":
            return self.expression(node.left), self.expression(node.right)
        if isinstance(node.left, ast.Number | ast.Text):
            right = self.expression(node.right, time_sums.unit_from(node.right, beside))
            return self._side(node.left, right, beside), right
        left = self.expression(node.left, beside)
        return left, self._side(node.right, left, beside)

    def _side(self, node: ast.Expression, other: Found, beside: Found | None) -> Found:
        """The second one that is read, by the first one or what the sum is compared with."""
        says = bool(other.unit) or other.term.type == plans.TIMESTAMP
        return self.expression(node, time_sums.unit_from(node, other if says else beside))

    def _compared(self, operator: str, left: ast.Expression, right: ast.Expression, span: Span) -> Term:
        # A literal is read as what it is compared with.
        literal = isinstance(left, ast.Number | ast.Text)
        second = self.expression(right) if literal else None
        first = self.expression(left, second)
        second = second if second is not None else self.expression(right, first)
        kinds = {first.term.type, second.term.type} - {plans.NULL}
        if any(kind.endswith("[]") for kind in kinds):
            raise QueryError("an array is compared", "arrays can be selected, and asked for IS NULL", span)
        if len(kinds) == 2 and not kinds <= plans.NUMBERS:
            one, other = (_CALLED[found.term.type] for found in (first, second))
            raise QueryError(f"{one} is compared with {other}", _would_be(first, second), span)
        if _differ(first.unit, second.unit):
            raise QueryError(f"{first.unit} is compared with {second.unit}", "bring both to one unit", span)
        return Term(operator, plans.BOOLEAN, (first.term, second.term))

    def _in(self, node: ast.InList) -> Term:
        made: Term | None = None
        for item in node.items:
            equal = self._compared("=", node.operand, item, item.span)
            made = equal if made is None else Term("OR", plans.BOOLEAN, (made, equal))
        assert made is not None
        return made


def _differ(one: str, other: str) -> bool:
    """Whether numbers in these units are not to be compared as they are: °C is degC, and mV is not V."""
    if not one or not other or one == other:
        return False
    known = unit_of(one)
    return known is None or known != unit_of(other)


def _would_be(first: Found, second: Found) -> str:
    if plans.TIMESTAMP in (first.term.type, second.term.type):
        return "a time is compared with a text as in '2002-11-06 12:00:00'"
    if plans.TEXT in (first.term.type, second.term.type):
        return "texts stand in ', numbers do not"
    return "compare what is of one type"


def _check(term: Term, kind: str, span: Span) -> None:
    if term.type not in (kind, plans.NULL):
        called = _CALLED.get(term.type, "an array")
        raise QueryError(f"{called} stands where {_CALLED[kind]} is needed", "", span)


def _check_number(term: Term, span: Span) -> None:
    if term.type not in plans.NUMBERS:
        raise QueryError(f"{_CALLED.get(term.type, 'an array')} is no number", "reckon with numbers", span)


def _number(node: ast.Number, beside: Found | None) -> Term:
    value = node.value
    if node.unit is not None:
        unit = beside.unit if beside is not None else ""
        if node.unit != unit:
            known, own = unit_of(node.unit), unit_of(unit) if unit else None
            if known is None or own is None or known[0] != own[0]:
                has = f"it is in {unit}" if unit else "it has no unit"
                raise QueryError(f"unit '{node.unit}' does not fit what it stands beside", has, node.span)
            value = value * known[1] / own[1]
    whole = value == value.to_integral_value()
    if whole and abs(value) < 2**63:
        return Term("literal", plans.INT, (), int(value))
    if whole or round(value, _PLACES) != value:
        return Term("literal", plans.DOUBLE, (), float(value))
    return Term("literal", plans.DECIMAL, (), str(value))


def _text(node: ast.Text, beside: Found | None) -> Term:
    if beside is not None and beside.term.type == plans.TIMESTAMP:
        try:
            moment = datetime.fromisoformat(node.text)
        except ValueError:
            hint = "write a time as in '2002-11-06 12:00:00', in UTC or with its zone"
            raise QueryError(f"'{node.text}' is no time", hint, node.span) from None
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return Term("literal", plans.TIMESTAMP, (), moment.astimezone(UTC).isoformat())
    return Term("literal", plans.TEXT, (), node.text)
