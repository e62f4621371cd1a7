"""Joins of a stream with tables: what names of their columns mean, and which conditions join. Motes know nothing of tables.

Source: Madden and Franklin 2002 (Fjords), section 4.3: the stream is the outer relation, and probes the table with each row.
"""

from __future__ import annotations

from skerry.expressions.expression import Expr
from skerry.planner.model.joined_tables import (
    JoinedTable,
    Probe,
    reads_stream,
    tables_in,
)
from skerry.planner.semantics.draft import Draft
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.quoting import as_name
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate


def table_joins(draft: Draft) -> Draft:
    """How its rows find those of the tables that they are joined with, at the gateway."""
    scope = draft.scope
    if not scope.tables:
        return draft
    _check(draft)
    return draft.planned(probes=probes_of(scope.tables, list(draft.on), draft.select))


def probes_of(joined: tuple[JoinedTable, ...], on: list[Expr], select: ast.Select) -> tuple[Probe, ...]:
    """In which order tables are joined, and how. Raises QueryError for one that nothing bounds."""
    left, known, probes = list(joined), frozenset([""]), list[Probe]()
    open_conditions = list(on)
    while left:
        found = next(
            (
                probe
                for table in left
                for probe in [_probe(table, known, open_conditions)]
                if probe is not None
            ),
            None,
        )
        if found is None:
            table = left[0]
            span = next(t.name.span for t in select.tables if t.called == table.called)
            stream = next(
                (t.called for t in select.tables if t.past is None and t.name.name.lower() == "sensors"), "s"
            )
            example = (
                f"{as_name(table.called)}.{as_name(table.schema.columns[0].name)} = {as_name(stream)}.nodeid"
            )
            raise QueryError(
                f"nothing says which rows of {table.called} belong to a row of the stream",
                f"join it by an equality, as in WHERE {example}",
                span,
            )
        left.remove(found.table)
        known |= {found.table.called}
        done = {found.outer, found.inner}
        open_conditions = [part for part in open_conditions if part.op is not Op.EQ or set(part.args) != done]
        then = [part for part in open_conditions if tables_in(part) <= known]
        open_conditions = [part for part in open_conditions if part not in then]
        probes.append(Probe(found.table, found.outer, found.inner, tuple(then)))
    return tuple(probes)


def _probe(table: JoinedTable, known: frozenset[str], on: list[Expr]) -> Probe | None:
    found: list[Probe] = []
    for part in on:
        if part.op is not Op.EQ or part.final:
            continue
        for inner, outer in (part.args, part.args[::-1]):
            if tables_in(inner) == {table.called} and not reads_stream(inner) and tables_in(outer) <= known:
                found.append(Probe(table, outer, inner, ()))
    # What is the same for all rows of the stream tells fewer of the table's apart.
    return min(
        found, key=lambda probe: not reads_stream(probe.outer) and not tables_in(probe.outer), default=None
    )


def _check(draft: Draft) -> None:
    """Raises QueryError for what does not go with tables."""
    select, plan, span = draft.select, draft.plan, draft.span
    on_motes = [*plan.temporal, *([plan.having] if plan.having is not None and plan.window is None else [])]
    if any(tables_in(expr) for expr in on_motes):
        hint = "windows and HAVING are of motes' rows: compare with the table in WHERE"
        raise QueryError("a table stands where motes' rows are meant", hint, span)
    acts = bool(plan.starts) or any(clause.kind is not Aggregate.QUEUE for clause in plan.clauses)
    others = {
        "ONCE": plan.once, "INTO": select.into is not None,
        "storage points": bool(plan.reads), "events and actions": acts,
        "LIFETIME": isinstance(select.sampling, ast.Lifetime), "a FROM without sensors": draft.scope.sensors is None,
    }  # fmt: skip
    for what, there in others.items():
        if there:
            hint = "a table is joined with rows of sensors as they come: SELECT … FROM sensors AS s, table AS t … SAMPLE PERIOD n unit"
            raise QueryError(f"tables do not go with {what}", hint, span)
