"""Queries that read storage points: which rows they meet, and what motes report of each pair. Source: TinyDB 2005, 3.2."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr
from skerry.planner.model.clause import Clause
from skerry.planner.model.columns import IN_EVERY_ROW
from skerry.planner.model.plans import Column
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.scope import Scope, Source, row_number
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NUMBER, ValueFormat
from skerry_protocol.bytecode import Op, StoredField
from skerry_protocol.codes import Aggregate, Match
from skerry_protocol.programs import From

#: What COMBINE makes of several rows: name → aggregate.
_COMBINING = {
    kind.name: kind for kind in (Aggregate.AVG, Aggregate.MIN, Aggregate.MAX, Aggregate.SUM, Aggregate.COUNT)
}


def matches(draft: Draft) -> Draft:
    """Which storage points are read, and what COMBINE and INTERPOLATE say of their rows."""
    if draft.select.strategy is not None:
        return draft  # motes' rows are stored nowhere
    return replace(draft, scope=_matched(draft.select, draft.scope)).planned(reads=draft.scope.points)


def joins(draft: Draft) -> Draft:
    """The clauses and columns of a query that reads storage points, which motes evaluate as a whole."""
    select, plan, scope = draft.select, draft.plan, draft.scope
    if not scope.sources or select.strategy is not None:
        return draft
    if plan.temporal:
        hint = "aggregate the rows of the storage point instead, as in AVG(rl.light)"
        raise QueryError("windows are over each mote's own rows, not over those of a join", hint, draft.span)
    if plan.where is not None and select.where is not None and (reason := obstacle(plan.where)):
        hint = f"joins are computed by motes, and {reason}"
        raise QueryError("this condition cannot be evaluated by a mote", hint, select.where.span)
    clauses = (*plan.clauses, *_from_clauses(scope, interpolated=select.interpolate is not None))
    columns = () if plan.aggregate else _columns((output.expr for output in plan.outputs), scope)
    return draft.planned(clauses=clauses, columns=columns)


def _matched(select: ast.Select, scope: Scope) -> Scope:
    """The scope with what COMBINE says. Raises QueryError for a COMBINE or INTERPOLATE that has no meaning."""
    span = select.interpolate.span if select.interpolate is not None else None
    span = select.combine[0].span if select.combine else span
    if span is None:
        return scope
    word = "COMBINE" if select.combine else "INTERPOLATE"
    if not scope.sources:
        hint = "name a storage point in FROM, or leave it out"
        raise QueryError(f"{word} is about rows of a storage point", hint, span)
    if select.combine and select.interpolate is not None:
        hint = (
            "COMBINE where the point's rows come faster than the query's, INTERPOLATE where they come slower"
        )
        raise QueryError("COMBINE and INTERPOLATE exclude each other", hint, select.interpolate.span)
    for source in scope.sources if select.interpolate is not None else ():
        if source.point.period_ms is None:
            hint = "it has rows at equal distances where CREATE STORAGE POINT … AS SELECT fills it"
            raise QueryError(f"{source.point.name} cannot be interpolated", hint, span)
    for call in select.combine:
        scope = _combined(call, scope)
    return scope


def _combined(call: ast.Expression, scope: Scope) -> Scope:
    hint = f"write COMBINE AVG({scope.sources[0].called}.{scope.sources[0].point.fields[0].name}); there are {', '.join(_COMBINING)}"
    if not isinstance(call, ast.Call) or len(call.arguments) != 1 or call.distinct or call.star:
        raise QueryError("COMBINE takes aggregates of a storage point's fields", hint, call.span)
    kind = _COMBINING.get(call.function.upper())
    if kind is None:
        raise QueryError(f"{call.function} does not combine rows", hint, call.span)
    (argument,) = call.arguments
    plain = replace(scope, sources=tuple(replace(source, combined={}) for source in scope.sources))
    expr = plain.resolve(argument) if isinstance(argument, ast.Name) else None
    if expr is None or expr.op is not Op.STORED or expr.operand is None:
        raise QueryError("COMBINE takes fields of storage points", hint, argument.span)
    number, index = expr.operand >> 4, expr.operand & 15
    sources = list(scope.sources)
    combined = sources[number].combined
    if index in combined:
        name = sources[number].point.fields[index].name
        raise QueryError(f"{name} is combined twice", "leave one of them out", call.span)
    sources[number] = replace(sources[number], combined={**combined, index: kind})
    return replace(scope, sources=tuple(sources))


def _from_clauses(scope: Scope, *, interpolated: bool) -> tuple[Clause, ...]:
    """The storage points that a program reads, in the order of its STORED opcodes."""
    return tuple(_from(source, interpolated) for source in scope.sources)


def _from(source: Source, interpolated: bool) -> Clause:
    # Of two points one may be combined while all rows of the other are met.
    match = Match.LINEAR if interpolated else Match.COMBINE if source.combined else Match.ALL
    code = From.build({"point": source.point.number, "match": int(match)})
    last = max(source.combined, default=-1)
    kinds = [int(source.combined.get(i, Aggregate.NONE)) for i in range(last + 1)]
    return Clause(Aggregate.FROM, source.point.name, values=(*code, *kinds))


def _columns(exprs: Iterable[Expr], scope: Scope) -> tuple[Column, ...]:
    """What a row carries of each pair: the numbers of the stored rows, then all that the columns are computed from."""
    numbers = tuple(Column(f"row{i}", row_number(i), ValueFormat.U16) for i in range(len(scope.sources)))
    leaves = dict.fromkeys(node for expr in exprs for node in expr.walk() if _is_leaf(node))
    return (*numbers, *(_leaf(node, scope) for node in leaves))


def _is_leaf(node: Expr) -> bool:
    return node.op is Op.STORED or (
        node.is_attribute and node.operand is not None and node.operand not in IN_EVERY_ROW
    )


def _leaf(node: Expr, scope: Scope) -> Column:
    assert node.operand is not None
    if node.is_attribute:
        return Column(BY_NUMBER[node.operand].name, node, BY_NUMBER[node.operand].format)
    name = f"s{node.operand}"
    if node.operand & 15 >= StoredField.NUMBER:
        return Column(name, node, ValueFormat.U16 if node.high <= 0xFFFF else ValueFormat.I32)
    source = scope.sources[node.operand >> 4]
    kind = source.combined.get(node.operand & 15, Aggregate.NONE)
    own = source.point.fields[node.operand & 15].format
    formats = {Aggregate.SUM: ValueFormat.I32, Aggregate.COUNT: ValueFormat.U16}
    return Column(name, node, formats.get(kind, own))
