"""Joins of a stream with tables: what names of their columns mean, and which conditions join. Motes know nothing of tables.

Source: Madden and Franklin 2002 (Fjords), section 4.3: the stream is the outer relation, and probes the table with each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skerry.expressions.build import join
from skerry.expressions.expression import MIXED, Expr, Kind, conjuncts, render
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import ATTRIBUTES, BY_NAME
from skerry_protocol.bytecode import Op
from skerry_protocol.packets import Aggregate

if TYPE_CHECKING:
    from skerry.planner.model.plans import QueryPlan

#: Integers of a table's numbers lie within this: 64 bits leave room to reckon.
NUMBER_LIMIT = 10**15
#: UTC of the sample, in s.
NOW = Expr(Op.ATTR, (), None, 3, 0, 10**14, Kind.NUMBER, MIXED, final=("now",))


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column. ``digits``: decimal places of its numbers."""

    name: str
    digits: int
    text: bool = False


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table as it was read last; names are in lower case."""

    name: str
    columns: tuple[TableColumn, ...]

    def to_list(self) -> list[Any]:
        """For JSON."""
        return [self.name, [[column.name, column.digits, column.text] for column in self.columns]]

    @classmethod
    def from_list(cls, data: list[Any]) -> TableSchema:
        """What :meth:`to_list` wrote."""
        name, columns = data
        return cls(name, tuple(TableColumn(*column) for column in columns))


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a table that is there cannot be used, in two parts as a refused query has them."""

    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}"


#: The user's epoch that a row of the past was sampled in, and when that was, UTC in s.
EPOCH, TIME = "epoch", "time"
#: What rows of the past say.
PAST = TableSchema(
    "the past of sensors",
    (*(TableColumn(entry.name, entry.digits) for entry in ATTRIBUTES), TableColumn(TIME, 3)),
)

#: By name in lower case.
Tables = Mapping[str, TableSchema | Trouble]
NO_TABLES: Tables = {}


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table in FROM. ``called``: what stands before the point of its columns. ``past_ms``: it is what the stream was in
    that time before each of its rows; None: it is another table."""

    called: str
    schema: TableSchema
    past_ms: int | None = None

    def column(self, name: str) -> Expr | None:
        """What a column's name stands for."""
        entry = BY_NAME.get(name) if self.past_ms is not None else None
        if entry is not None and name != EPOCH:
            low, high = (round(bound * 10**entry.digits) for bound in (entry.minimum, entry.maximum))
            final = ("table", self.called, name)
            return Expr(Op.ATTR, (), None, entry.digits, low, high, Kind.NUMBER, entry.unit, final=final)
        for column in self.schema.columns:
            if column.name == name:
                final = ("table", self.called, column.name)
                if column.text:
                    return Expr(Op.ATTR, kind=Kind.TEXT, final=final)
                limit = NUMBER_LIMIT
                return Expr(Op.ATTR, (), None, column.digits, -limit, limit, Kind.NUMBER, MIXED, final=final)
        return None


@dataclass(frozen=True, slots=True)
class Probe:
    """How a table's rows are found: ``outer``, of the stream and the tables before, equals ``inner``, of this table.
    ``then``: conditions that are known once it is joined."""

    table: JoinedTable
    outer: Expr
    inner: Expr
    then: tuple[Expr, ...]

    def __str__(self) -> str:
        parts = [f"{render(self.outer)} = {render(self.inner)}", *(f"({render(part)})" for part in self.then)]
        return " AND ".join(parts)


def tables_in(expr: Expr) -> frozenset[str]:
    """What the tables are called whose columns an expression reads; NOW reads ''."""
    found = {str(node.final[1]) for node in expr.walk() if node.final[:1] == ("table",)}
    return frozenset(found | ({""} if any(node == NOW for node in expr.walk()) else set()))


def columns_read(exprs: Iterable[Expr], table: JoinedTable) -> frozenset[str]:
    """Names of a table's columns that expressions read."""
    leaves = [node.final for expr in exprs for node in expr.walk() if node.final[:1] == ("table",)]
    return frozenset(str(final[2]) for final in leaves if final[1] == table.called)


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


def reads_stream(expr: Expr) -> bool:
    """Whether it names an attribute of motes."""
    return any(node.is_attribute and node.operand is not None for node in expr.walk())


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
