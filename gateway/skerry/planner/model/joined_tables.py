"""Tables that a stream is joined with: their columns, and how the rows that belong to a row of the stream are found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from skerry.expressions.expression import MIXED, Expr, Kind, from_list, render
from skerry.expressions.unit_algebra import UTC
from skerry.planner.model.row_time import is_of_row
from skerry_protocol.attributes import ATTRIBUTES, BY_NAME
from skerry_protocol.bytecode import Op

#: Integers of a table's numbers lie within this: 64 bits leave room to reckon.
NUMBER_LIMIT = 10**15


class ColumnKind(Enum):
    """What a column holds. BLANK: nothing, of which nobody knows what it would be."""

    NUMBER = "number"
    TEXT = "text"
    TIME = "time"
    BLANK = "nothing"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column. ``digits``: decimal places of its numbers, or of its times' seconds."""

    name: str
    digits: int
    kind: ColumnKind = ColumnKind.NUMBER


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table as it was read last; names are in lower case. ``unusable``: columns that it has, and why queries cannot have them."""

    name: str
    columns: tuple[TableColumn, ...]
    unusable: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def to_list(self) -> list[Any]:
        """For JSON."""
        return [self.name, [[column.name, column.digits, column.kind.value] for column in self.columns]]

    @classmethod
    def from_list(cls, data: list[Any]) -> TableSchema:
        """What :meth:`to_list` wrote."""
        name, columns = data
        return cls(
            name, tuple(TableColumn(column, digits, ColumnKind(kind)) for column, digits, kind in columns)
        )


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
    (*(TableColumn(entry.name, entry.digits) for entry in ATTRIBUTES), TableColumn(TIME, 3, ColumnKind.TIME)),
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

    def is_blank(self, expr: Expr) -> bool:
        """Whether it is one of its columns, and has nothing in it."""
        blank = [column.name for column in self.schema.columns if column.kind is ColumnKind.BLANK]
        return expr.final[:2] == ("table", self.called) and expr.final[2] in blank

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
                if column.kind is ColumnKind.TEXT:
                    return Expr(Op.ATTR, kind=Kind.TEXT, final=final)
                limit = NUMBER_LIMIT
                unit = UTC if column.kind is ColumnKind.TIME else MIXED
                return Expr(Op.ATTR, (), None, column.digits, -limit, limit, Kind.NUMBER, unit, final=final)
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

    def to_list(self) -> list[Any]:
        """For JSON."""
        table, outer, inner = self.table, self.outer.to_list(), self.inner.to_list()
        return [
            table.called,
            table.schema.to_list(),
            table.past_ms,
            outer,
            inner,
            [part.to_list() for part in self.then],
        ]

    @classmethod
    def from_list(cls, data: list[Any]) -> Probe:
        """What :meth:`to_list` wrote."""
        called, schema, past_ms, outer, inner, then = data
        table = JoinedTable(called, TableSchema.from_list(schema), past_ms)
        return cls(table, from_list(outer), from_list(inner), tuple(map(from_list, then)))


def tables_in(expr: Expr) -> frozenset[str]:
    """What the tables are called whose columns an expression reads; the row's own time reads ''."""
    found = {str(node.final[1]) for node in expr.walk() if node.final[:1] == ("table",)}
    return frozenset(found | ({""} if any(map(is_of_row, expr.walk())) else set()))


def columns_read(exprs: Iterable[Expr], table: JoinedTable) -> frozenset[str]:
    """Names of a table's columns that expressions read."""
    leaves = [node.final for expr in exprs for node in expr.walk() if node.final[:1] == ("table",)]
    return frozenset(str(final[2]) for final in leaves if final[1] == table.called)


def reads_stream(expr: Expr) -> bool:
    """Whether it names an attribute of motes."""
    return any(node.is_attribute and node.operand is not None for node in expr.walk())
