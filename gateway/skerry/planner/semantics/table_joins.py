"""Joins of a stream with tables: what names of their columns mean, and which conditions join. Motes know nothing of tables.

Source: Madden and Franklin 2002 (Fjords), section 4.3: the stream is the outer relation, and probes the table with each row.
"""

from __future__ import annotations

from collections.abc import Iterable

from skerry.expressions.build import join
from skerry.expressions.expression import Expr, conjuncts
from skerry.planner.model.joined_tables import (
    EPOCH,
    TIME,
    JoinedTable,
    Probe,
    columns_read,
    reads_stream,
    tables_in,
)
from skerry.planner.model.plans import QueryPlan
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.bytecode import Op
from skerry_protocol.packets import Aggregate


def past_attributes(exprs: Iterable[Expr], joined: Iterable[JoinedTable]) -> frozenset[int]:
    """Attributes of the past that are read, which motes have to sample from now on."""
    names = (columns_read(exprs, table) for table in joined if table.past_ms is not None)
    return frozenset(BY_NAME[name].number for name in frozenset[str]().union(*names) - {EPOCH, TIME})


def split(where: Expr | None) -> tuple[Expr | None, list[Expr]]:
    """The condition on the stream alone, and those that AND joins with it which need a table or NOW."""
    parts = conjuncts(where)
    alone = [part for part in parts if not tables_in(part)]
    return where if len(alone) == len(parts) else join(Op.AND, alone), [
        part for part in parts if tables_in(part)
    ]


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
            example = f"{table.called}.{table.schema.columns[0].name} = {stream}.nodeid"
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
    for part in on:
        if part.op is not Op.EQ:
            continue
        for inner, outer in (part.args, part.args[::-1]):
            if tables_in(inner) == {table.called} and not reads_stream(inner) and tables_in(outer) <= known:
                return Probe(table, outer, inner, ())
    return None


def check_joined(select: ast.Select, plan: QueryPlan, *, sensors: bool) -> None:
    """Raises QueryError for what does not go with tables."""
    span = select.items[0].span.to(select.items[-1].span)
    on_motes = [*plan.temporal, *([plan.having] if plan.having is not None and plan.window is None else [])]
    if any(tables_in(expr) for expr in on_motes):
        hint = "windows and HAVING are of motes' rows: compare with the table in WHERE"
        raise QueryError("a table stands where motes' rows are meant", hint, span)
    acts = bool(plan.starts) or any(clause.kind is not Aggregate.QUEUE for clause in plan.clauses)
    others = {
        "ONCE": plan.once, "INTO": select.into is not None,
        "storage points": bool(plan.reads), "events and actions": acts,
        "LIFETIME": isinstance(select.sampling, ast.Lifetime), "a FROM without sensors": not sensors,
    }  # fmt: skip
    for what, there in others.items():
        if there:
            hint = "a table is joined with rows of sensors as they come: SELECT … FROM sensors AS s, table AS t … SAMPLE PERIOD n unit"
            raise QueryError(f"tables do not go with {what}", hint, span)
