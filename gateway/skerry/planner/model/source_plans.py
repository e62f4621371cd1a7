"""What a query over sensors that are no motes asks: plain values that executors read as JSON.

A :class:`Term` is an expression over the columns of a stream's batches. These have the names that users see, in lower case: a static
column its own (``place``), the stream attribute its own, which is the address (``reading``), a field its name behind that
(``reading.level``). Three more are nobody's: :data:`SOURCE`, :data:`TIME` and :data:`ARRIVAL`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skerry.planner.model.source_windows import SourceGrouping
    from skerry.planner.model.table_lookups import Lookups

#: The number of the tuple that a row is of; its time, and when it came (UTC).
SOURCE, TIME, ARRIVAL = "_source", "_time", "_arrival"
#: Streams in the log have numbers: motes' are below this one, and answers of joins from :data:`ANSWERS` on, by the query's id, of those
#: that CREATE STREAM made from :data:`MADE` on.
STREAMS = 1 << 31
ANSWERS = 3 << 30
MADE = 7 << 29

#: What the motes are called, which may be one of a join's tables, and how columns of their batches begin.
MOTES = "sensors"
INT, DECIMAL, DOUBLE, TEXT, BOOLEAN, TIMESTAMP = "int", "decimal", "double", "text", "boolean", "timestamp"
#: Arrays of motes with their values.
RANKED_INT, RANKED_DOUBLE = "ranked int[]", "ranked double[]"
#: The literal NULL's, which any other type takes.
NULL = "null"
NUMBERS = frozenset({INT, DECIMAL, DOUBLE, NULL})
#: So long ONCE waits for sources that have brought no row, where WAIT says nothing else.
WAIT_MS = 10_000
#: How the API calls types.
_SHOWN = {
    INT: "integer",
    DECIMAL: "decimal",
    DOUBLE: "decimal",
    TEXT: "text",
    BOOLEAN: "boolean",
    TIMESTAMP: "timestamp",
    NULL: "text",
}


def answers_of(query: str, *, made: bool) -> int:
    """The stream of a query's answers."""
    return (MADE if made else ANSWERS) + int(query)


def query_of(stream: int) -> str:
    """Of a stream of answers, the query."""
    return str(stream - (MADE if stream >= MADE else ANSWERS))


@dataclass(frozen=True, slots=True)
class Term:
    """``op``: ``column`` or ``literal``, whose ``value`` says which; a comparison, ``AND``, ``OR``, ``NOT``, ``+ - * / %``, ``NEGATE``,
    ``MICROSECONDS`` of a time since 1970, ``IS NULL``, ``LIKE`` with the pattern as ``value``, or ``CALL`` of the function that ``value``
    names. ``type``: one of those above, of an array with ``[]`` behind it. Decimals and times are texts."""

    op: str
    type: str
    args: tuple[Term, ...] = ()
    value: str | int | float | bool | None = None

    def to_list(self) -> list[Any]:
        """For JSON."""
        return [self.op, self.type, [arg.to_list() for arg in self.args], self.value]

    @classmethod
    def from_list(cls, data: list[Any]) -> Term:
        """What :meth:`to_list` wrote."""
        op, kind, args, value = data
        return cls(op, kind, tuple(map(cls.from_list, args)), value)

    def columns(self) -> Iterator[str]:
        """Names of the columns that it needs."""
        for name, _ in self.typed_columns():
            yield name

    def typed_columns(self) -> Iterator[tuple[str, str]]:
        """The same with their types."""
        if self.op == "column":
            yield str(self.value), self.type
        for arg in self.args:
            yield from arg.typed_columns()

    def calls(self) -> Iterator[Term]:
        """Calls in it that are in no other one."""
        if self.op == "CALL":
            yield self
            return
        for arg in self.args:
            yield from arg.calls()


def conjuncts(where: Term | None) -> list[Term]:
    """What must all be true."""
    if where is None:
        return []
    return [part for arg in where.args for part in conjuncts(arg)] if where.op == "AND" else [where]


def all_of(parts: Sequence[Term]) -> Term | None:
    """All of these; None: there are none."""
    made: Term | None = None
    for part in parts:
        made = part if made is None else Term("AND", BOOLEAN, (made, part))
    return made


@dataclass(frozen=True, slots=True)
class SourceNewest:
    """What executors make of a stream's rows for queries FROM LATEST: of each source that ``chosen``, a condition on static columns,
    selects its newest row in each record, with ``columns`` and their types."""

    chosen: Term | None
    columns: tuple[tuple[str, str], ...]

    def to_text(self) -> str:
        """JSON."""
        return json.dumps([self.chosen.to_list() if self.chosen is not None else None, self.columns])

    @classmethod
    def from_text(cls, text: str) -> SourceNewest:
        """What :meth:`to_text` wrote."""
        chosen, columns = json.loads(text)
        return cls(
            Term.from_list(chosen) if chosen is not None else None,
            tuple((name, kind) for name, kind in columns),
        )


@dataclass(frozen=True, slots=True)
class SourceOutput:
    """A column that a user sees. ``digits``: as many decimal places as each number has."""

    name: str
    term: Term
    unit: str
    digits: int | None = None

    @property
    def type(self) -> str:
        """As of :class:`skerry.planner.model.plans.Output`."""
        return "list" if self.term.type.endswith("[]") else _SHOWN[self.term.type]


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """An alias of a join: the table that it follows, its rows' stream in the log, the part of WHERE that its static columns decide, and the
    columns of the table that the join reads. ``motes``: it follows motes, and this is what they are asked."""

    alias: str
    table: str
    stream: int
    chosen: Term | None
    needs: tuple[str, ...]
    motes: str | None = None


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A join of streams within windows, or what is mined in one. ``spec``: what executors read of it
    (:mod:`skerry.execution.join_sets`); ``algorithm``, and why; ``keeps``: how much its windows hold, or how often what is mined comes, as
    a sentence."""

    tables: tuple[JoinedTable, ...]
    spec: str
    algorithm: str
    reason: str
    keeps: str

    @property
    def questions(self) -> tuple[str, ...]:
        """What motes are asked for it, each once."""
        return tuple(dict.fromkeys(one.motes for one in self.tables if one.motes is not None))

    @property
    def of_sources(self) -> tuple[JoinedTable, ...]:
        """Those of the tables that have sources which are no motes."""
        return tuple(one for one in self.tables if one.motes is None)

    def executed(self) -> dict[str, Any]:
        """``spec``."""
        found: dict[str, Any] = json.loads(self.spec)
        return found


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """``table``: its name in lower case. ``stream``: the number of its rows' stream in the log; None: of static columns alone, for which
    nothing is opened. ``chosen``: the part of ``where`` that static columns decide, by which sources are chosen. ``order``, ``limit``: of
    static rows, or of the rows of a window. ``grouping``: what it aggregates; the other terms are over what that gives then. ``latest``: it
    is answered from the newest row of each source, with ``once`` when each has brought one, for which it waits so long."""

    table: str
    stream: int | None
    outputs: tuple[SourceOutput, ...]
    where: Term | None
    chosen: Term | None
    order: tuple[tuple[Term, bool], ...] = ()
    limit: int | None = None
    #: Of a join: ``stream`` is that of its answers.
    join: JoinPlan | None = None
    grouping: SourceGrouping | None = None
    latest: bool = False
    once: bool = False
    wait_ms: int = WAIT_MS
    #: The name of the stream that CREATE STREAM makes of it.
    made: str = ""
    #: The tables that rows, or answers of the join, are joined with before ``where`` is asked; their columns are among those of terms.
    lookups: Lookups | None = None

    def chosen_of(self) -> list[tuple[str, Term | None]]:
        """The tables whose sources it reads, each with the condition by which they are chosen."""
        if self.join is None:
            return [(self.table, self.chosen)]
        return list(dict.fromkeys((one.table, one.chosen) for one in self.join.of_sources))

    def reads(self, table: str, column: str | None) -> bool:
        """Whether it needs a table, or a column of it."""
        for one in self.lookups.tables if self.lookups is not None else ():
            if one.of_sensors() == table and (column is None or column in dict(one.columns)):
                return True
        if self.join is None:
            return self.table == table and (column is None or column in self.needs())
        return any(
            one.table == table and (column is None or column in one.needs) for one in self.join.of_sources
        )

    def streams_read(self) -> set[int]:
        """Numbers of the streams in the log that its rows, or those that it joins, are of."""
        if self.join is not None:
            return {one.stream for one in self.join.of_sources}
        return {self.stream} if self.stream is not None else set()

    @property
    def of_motes(self) -> bool:
        """Whether it is of rows of motes alone."""
        return self.join is not None and not self.join.of_sources

    @property
    def gathers(self) -> bool:
        """Whether its rows are not those of the stream, but made of many."""
        return self.windowed or self.latest

    def read_terms(self) -> list[Term]:
        """Over the stream's columns and those of tables, all that it asks."""
        terms = [output.term for output in self.outputs] + [term for term, _ in self.order]
        terms = terms if self.grouping is None else list(self.grouping.terms())
        terms += self.lookups.terms() if self.lookups is not None else []
        return terms + ([self.where] if self.where is not None else [])

    def read_columns(self) -> dict[str, str]:
        """The stream's columns that it reads, with their types."""
        tables = self.lookups.own() if self.lookups is not None else {}
        columns = (column for term in self.read_terms() for column in term.typed_columns())
        return {name: kind for name, kind in columns if name not in tables}

    @property
    def newest(self) -> SourceNewest:
        """Of a query FROM LATEST, what is to be made of rows for it."""
        return SourceNewest(self.chosen, tuple(sorted(self.read_columns().items())))

    @property
    def windowed(self) -> bool:
        """Whether it has aggregates over windows of a stream."""
        return self.grouping is not None and self.grouping.frame is not None

    def shown_columns(self) -> set[str]:
        """Columns that its outputs read."""
        return {name for output in self.outputs for name in output.term.columns()}

    def needs(self) -> list[str]:
        """Columns of the stream that its outputs and conditions read, each once."""
        terms = (
            [output.term for output in self.outputs] if self.grouping is None else list(self.grouping.terms())
        )
        terms += [self.where] if self.where is not None else []
        terms += self.lookups.terms() if self.lookups is not None else []
        of_tables = self.lookups.own().keys() if self.lookups is not None else set[str]()
        return sorted({name for term in terms for name in term.columns()} - of_tables)
