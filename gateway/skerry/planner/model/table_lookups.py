"""Tables that a query's rows, or the answers of its join, are joined with at last: plain values that executors read as JSON.

A table's rows have no time. A row of a stream meets those that the table had when it came into the log, whenever it is read again
(:mod:`skerry.tables.versions`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skerry.planner.model.joined_tables import TableSchema
from skerry.planner.model.source_plans import Term

#: Before the names of tables of sensors among those of files: no file's name has it.
OF_SENSORS = "sensors/"


@dataclass(frozen=True, slots=True)
class TableLookup:
    """A table in FROM. ``called``: its columns are ``called.name`` in terms; ``reading``: under which name its readings are noted;
    ``columns``: those that are read, with their types; ``left``: a row that meets none has NULLs. ``on``: which of its rows are met, over
    the stream's columns, those of tables before, and its own. ``schema``: of a file, as it was when the query was planned."""

    called: str
    reading: str
    columns: tuple[tuple[str, str], ...]
    left: bool
    on: Term | None
    schema: TableSchema | None = None

    def to_list(self) -> list[Any]:
        """For JSON, without what only planning needs."""
        on = self.on.to_list() if self.on is not None else None
        return [self.called, self.reading, self.columns, self.left, on]

    @classmethod
    def from_list(cls, data: list[Any]) -> TableLookup:
        """What :meth:`to_list` wrote."""
        called, reading, columns, left, on = data
        read = tuple((name, kind) for name, kind in columns)
        return cls(called, reading, read, left, Term.from_list(on) if on is not None else None)

    @property
    def shown(self) -> str:
        """The table's name for people."""
        return self.reading.removeprefix(OF_SENSORS)

    def of_sensors(self) -> str | None:
        """The key of the table of sensors that it is; None: it is another table."""
        return self.shown if self.reading.startswith(OF_SENSORS) else None


@dataclass(frozen=True, slots=True)
class Lookups:
    """All tables of a query, in the order in which rows are joined with them. ``before``: what rows are asked first, of their own columns
    alone."""

    tables: tuple[TableLookup, ...]
    before: Term | None = None

    def to_list(self) -> list[Any]:
        """For JSON."""
        before = self.before.to_list() if self.before is not None else None
        return [[one.to_list() for one in self.tables], before]

    @classmethod
    def from_list(cls, data: list[Any]) -> Lookups:
        """What :meth:`to_list` wrote."""
        tables, before = data
        return cls(
            tuple(map(TableLookup.from_list, tables)), Term.from_list(before) if before is not None else None
        )

    @property
    def readings(self) -> list[str]:
        """Under which names readings of the tables are noted."""
        return sorted({one.reading for one in self.tables})

    def own(self) -> dict[str, str]:
        """The tables' columns by their names in terms, with their types."""
        return {f"{one.called}.{name}": kind for one in self.tables for name, kind in one.columns}

    def terms(self) -> Iterator[Term]:
        """All that is asked of rows on the way."""
        if self.before is not None:
            yield self.before
        yield from (one.on for one in self.tables if one.on is not None)


def lookups_to_list(lookups: Lookups | None) -> list[Any] | None:
    """For JSON; None: there are none."""
    return None if lookups is None else lookups.to_list()


def lookups_from_list(data: list[Any] | None) -> Lookups | None:
    """What :func:`lookups_to_list` wrote."""
    return None if data is None else Lookups.from_list(data)
