"""Syntax tree → typed expressions: names, units, kinds. Raises QueryError at the place of the mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal

from skerry.expressions import build, extension_aggregates
from skerry.expressions.expression import PLAIN, Expr, Kind, render
from skerry.planner.model.row_time import TIME
from skerry.planner.semantics import (
    aggregate_functions,
    positions,
    scalar_functions,
    temporal_aggregates,
    texts,
    time_windows,
)
from skerry.planner.semantics.scope import SENSORS, Scope
from skerry.planner.semantics.unit_checks import check_moments, check_units
from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.units import unit_of, units_of
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate

_ARITHMETIC: dict[str, Callable[[Expr, Expr], Expr]] = {
    "+": build.add, "-": build.subtract, "*": build.multiply, "/": build.divide, "%": build.modulo,
}  # fmt: skip
_COMPARISON = {"=": Op.EQ, "<>": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}

#: Functions as other languages call them, where another's name would be closer.
_ELSEWHERE = {"MEAN": "avg", "VAR": "variance", "DISTANCE": "dist"}


class Resolver:
    """Resolves the expressions of one clause. ``no_aggregates``: None, or why they are not allowed there; ``instead``: what is.
    ``period_ms``: the sample period, where it is known, for windows whose length is a time. ``scope``: what names mean."""

    def __init__(
        self,
        no_aggregates: str | None = None,
        period_ms: int | None = None,
        scope: Scope = SENSORS,
        instead: str = "",
    ) -> None:
        self._no_aggregates, self._instead = no_aggregates, instead
        self._period_ms = period_ms
        self._scope = scope

    def condition(self, node: ast.Expression, clause: str) -> Expr:
        """A condition, or NULL."""
        expr = self.expression(node)
        self._no_list(expr, node)
        if expr.kind is Kind.NUMBER:
            raise QueryError(
                f"{clause} needs a condition, and this is a number",
                "compare it, as in temp > 25.5",
                node.span,
            )
        return expr

    def number(self, node: ast.Expression, operator: str) -> Expr:
        """A number, or NULL."""
        return self._number(self.expression(node), node, operator)

    def _number(self, expr: Expr, node: ast.Expression, operator: str) -> Expr:
        self._no_list(expr, node)
        if expr.kind is Kind.CONDITION:
            raise QueryError(
                f"{operator} needs numbers, and this is a condition",
                "COUNT(*) with the condition in WHERE says how often it is true"
                if operator in aggregate_functions.NAMES
                else "join conditions with AND and OR",
                node.span,
            )
        return expr

    def _no_list(self, expr: Expr, node: ast.Expression) -> None:
        if expr.kind is Kind.TEXT:
            what = "texts can be columns, grouped by, and compared with texts, as in p.plot = 'north'"
            raise QueryError(f"{render(expr)} is a text, not a value to reckon with", what, node.span)
        if expr.kind is Kind.LIST:
            what = "ask for it as a column of its own"
            raise QueryError(f"{render(expr)} is a list, not a value to reckon with", what, node.span)

    def expression(self, node: ast.Expression) -> Expr:
        """Any expression."""
        match node:
            case ast.Number():
                return _literal(node)
            case ast.Text():
                raise texts.misplaced(node)
            case ast.Name():
                return self._scope.resolve(node)
            case ast.Call():
                return self._call(node)
            case ast.Binary():
                return self._binary(node)
            case _:
                return self._other(node)

    def _other(self, node: ast.Expression) -> Expr:
        match node:
            case ast.Unary():
                if node.operator == "NOT":
                    return build.invert(self.condition(node.operand, "NOT"))
                return build.negate(self.number(node.operand, "-"))
            case ast.IsNull():
                test = build.is_null(self.expression(node.operand))
                return build.invert(test) if node.negated else test
            case ast.Between():
                low = self._compare(Op.GE, node.operand, node.low)
                high = self._compare(Op.LE, node.operand, node.high)
                return _negated(build.logical(Op.AND, low, high), node.negated)
            case ast.InList():
                tests = [self._compare(Op.EQ, node.operand, item) for item in node.items]
                return _negated((build.join(Op.OR, tests) or build.null()), node.negated)
            case _:
                return (
                    _negated(self._like(node), node.negated) if isinstance(node, ast.Like) else build.null()
                )

    def _binary(self, node: ast.Binary) -> Expr:
        if node.operator in ("AND", "OR"):
            parts = ast.operands(node, node.operator)
            conditions = [self.condition(part, node.operator) for part in parts]
            return build.join(Op[node.operator], conditions) or build.null()
        if node.operator in _COMPARISON:
            return self._compare(_COMPARISON[node.operator], node.left, node.right)
        left = self.number(node.left, node.operator)
        right = self.number(node.right, node.operator)
        check_moments(node.operator, left, right, node.span)
        if node.operator == ">>":
            return _shift(left, right, node)
        if node.operator in ("+", "-", "%"):
            check_units(left, right, node.left, node.right, strict=False)
        with _magnitude_at(node.span):
            return _ARITHMETIC[node.operator](left, right)

    def _like(self, node: ast.Like) -> Expr:
        if isinstance(node.operand, ast.Text):
            raise texts.misplaced(node.operand)
        operand = self._scope.as_text(self.expression(node.operand))
        if operand.kind is Kind.NULL:
            return build.null()
        if operand.kind is not Kind.TEXT:
            raise QueryError(f"{render(operand)} is no text", "LIKE is of texts", node.operand.span)
        return build.like(operand, node.pattern.text)

    def _compare(self, op: Op, left_node: ast.Expression, right_node: ast.Expression) -> Expr:
        left, right = (
            build.text(node.text) if isinstance(node, ast.Text) else self.expression(node)
            for node in (left_node, right_node)
        )
        if Kind.TEXT in (left.kind, right.kind):
            left, right = (self._scope.as_text(side) for side in (left, right))
            left, right = texts.comparable(left, right, left_node, right_node)
        if Kind.TEXT in (left.kind, right.kind):
            return (
                build.null() if Kind.NULL in (left.kind, right.kind) else build.compare_texts(op, left, right)
            )
        left = self._number(left, left_node, "a comparison")
        right = self._number(right, right_node, "a comparison")
        check_units(left, right, left_node, right_node, strict=True)
        with _magnitude_at(left_node.span.to(right_node.span)):
            return build.compare(op, left, right)

    def _call(self, node: ast.Call) -> Expr:
        name = node.function.upper()
        if name in scalar_functions.NAMES and not (node.star or node.distinct):
            with _magnitude_at(node.span):
                return scalar_functions.value(node, self._scope.seed, lambda a: self.number(a, name.lower()))
        if not node.arguments and not node.star:
            return _of_nothing(node)
        if name == "DIST":
            with _magnitude_at(node.span):
                return positions.distance(node, lambda a: self.number(a, "dist"))
        if name == "POINT":
            hint = "write the distance from it, as in dist(loc, point(3 m, 4 m))"
            raise QueryError("a point is a position, not a number", hint, node.span)
        _check_known(name, node)
        if self._no_aggregates is not None:
            raise QueryError(f"{name} {self._no_aggregates}", self._instead, node.span)
        if name != "COUNT" and node.distinct:
            raise QueryError(f"{name}(DISTINCT …) has no meaning here", "write COUNT(DISTINCT …)", node.span)
        if node.star:
            if node.distinct:
                hint = "write COUNT(*), or COUNT(DISTINCT temp)"
                raise QueryError("COUNT(DISTINCT *) has no meaning", hint, node.span)
            if name != "COUNT":
                hint = "only COUNT takes *" + (
                    f": write {name}(temp)" if name in aggregate_functions.SIMPLE else ""
                )
                raise QueryError(f"{name}(*) has no meaning", hint, node.span)
            if not node.arguments:
                return build.aggregate(Aggregate.COUNT, None)
            if not time_windows.is_call(node):
                hint = "write COUNT(*), or COUNT(*, 5 min) for the rows of 5 min"
                raise QueryError("behind * there is room for a window only", hint, node.arguments[0].span)
        if time_windows.is_call(node):
            inner = Resolver("cannot stand inside an aggregate", scope=self._scope.inside)
            resolve = inner.expression if name == "COUNT" else lambda a: inner.number(a, name)
            with _magnitude_at(node.span):
                return time_windows.windowed(node, self._period_ms, resolve)
        with _magnitude_at(node.span):
            return (
                self._temporal(name, node)
                if name in temporal_aggregates.NAMES
                else self._aggregate(name, node)
            )

    def _temporal(self, name: str, node: ast.Call) -> Expr:
        inner = Resolver("cannot stand inside an aggregate", scope=self._scope.inside)
        resolve = inner.condition if name in temporal_aggregates.OF_CONDITIONS else inner.number
        return temporal_aggregates.temporal(node, self._period_ms, lambda a: resolve(a, name))

    def _aggregate(self, name: str, node: ast.Call) -> Expr:
        inner = Resolver("cannot stand inside an aggregate", scope=self._scope.inside)
        if name in aggregate_functions.WITH_CONSTANTS:
            return aggregate_functions.with_constants(
                node, lambda a: inner.number(a, name), recorded=self._scope.recorded
            )
        if len(node.arguments) > 1:
            span = node.arguments[1].span.to(node.arguments[-1].span)
            window = f", or {name}(temp, 5 min) for the last 5 min" if name in time_windows.KINDS else ""
            if not window and isinstance(node.arguments[1], ast.Number):
                window = f"; windows are of {', '.join(time_windows.KINDS)}, as in AVG(temp, 5 min)"
            raise QueryError(f"{name} takes one argument", f"write {name}(temp){window}", span)
        (argument,) = node.arguments
        if name == "ERROR":
            return aggregate_functions.error_of(node, self.expression(argument))
        if name == "COUNT" and not node.distinct:
            return build.aggregate(Aggregate.COUNT, inner.expression(argument))
        resolved = inner.number(argument, name)
        if name == "COUNT":
            return aggregate_functions.distinct(resolved)
        if name in aggregate_functions.OF_ONE:
            return aggregate_functions.of_one(name, resolved, recorded=self._scope.recorded)
        added = extension_aggregates.find(name)
        return (
            aggregate_functions.extension_call(added, resolved)
            if added is not None
            else build.aggregate(aggregate_functions.SIMPLE[name], resolved)
        )


def _check_known(name: str, node: ast.Call) -> None:
    """Raises QueryError for a function that is none, or is not of what it is of here."""
    known = (
        *aggregate_functions.NAMES,
        *extension_aggregates.names(),
        *temporal_aggregates.NAMES,
        "ERROR",
    )
    if name in scalar_functions.NAMES:
        what = "DISTINCT …" if node.distinct else "*"
        hint = f"write {scalar_functions.NAMES[name]}"
        raise QueryError(f"{node.function}({what}) has no meaning", hint, node.span)
    if name not in known:
        meant = _ELSEWHERE.get(name, node.function)
        guess = did_you_mean(meant, [one.lower() for one in (*known, "DIST", *scalar_functions.NAMES)])
        over_time = dict.fromkeys(kind.name for kind in temporal_aggregates.NAMES.values())
        aggregates = ", ".join([*aggregate_functions.NAMES, *extension_aggregates.names()])
        hint = f"{guess}aggregates are {aggregates}; over time {', '.join(over_time)}"
        raise QueryError(f"unknown function '{node.function}'", hint, node.span)


def _of_nothing(node: ast.Call) -> Expr:
    if node.function.upper() == "NOW":
        return TIME
    hint = "write dist(loc, event.loc)" if node.function.upper() == "DIST" else f"write {node.function}(temp)"
    raise QueryError(f"{node.function}() has nothing to be of", hint, node.span)


def _shift(left: Expr, right: Expr, node: ast.Binary) -> Expr:
    places = right.operand if right.is_constant and not right.digits else None
    if places is None or not 0 <= places < 31:
        what = "this is none" if right.operand is None else f"not {render(right)}"
        raise QueryError(f">> needs a whole number from 0 to 30, {what}", "write light >> 3", node.right.span)
    if left.digits:
        hint = "divide instead: it has decimal places"
        raise QueryError(">> is of whole numbers", hint, node.left.span)
    with _magnitude_at(node.span):
        return (
            build.shift(left, places)
            if not left.is_constant
            else build.number((left.operand or 0) >> places, 0)
        )


def _negated(expr: Expr, negated: bool) -> Expr:
    return build.invert(expr) if negated else expr


def _literal(node: ast.Number) -> Expr:
    unit, value = PLAIN, node.value
    if node.unit is not None:
        meant = unit_of(node.unit)
        if meant is None:
            known = units_of()
            close = [u for u in known if u.lower() == node.unit.lower()]
            guess = f"did you mean {close[0]}? " if close else ""
            hint = f"{guess}units are {', '.join(known)}"
            raise QueryError(f"unknown unit '{node.unit}'", hint, node.span)
        unit, factor = meant
        value *= factor
    with _magnitude_at(node.span):
        return constant(value, unit)


def constant(value: Decimal, unit: str = PLAIN) -> Expr:
    """A decimal number, exactly."""
    sign, figures, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    integer = int("".join(map(str, figures)) or "0") * (-1 if sign else 1)
    return build.number(integer * 10 ** max(0, exponent), max(0, -exponent), unit)


@contextmanager
def _magnitude_at(span: Span) -> Iterator[None]:
    try:
        yield
    except build.MagnitudeError as error:
        raise QueryError(
            f"the value {error}", "the gateway computes with 18 digits: scale it down", span
        ) from None
