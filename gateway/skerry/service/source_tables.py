"""Sources that are no motes as tables of the catalog: how each is, and what its table's columns have brought."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from skerry.catalog.table_select import Table
from skerry.sensors.definitions import SensorTable
from skerry.sensors.traffic import Seen
from skerry.sources.messages import Key, SourceState

#: ``sensors`` is the table of sensors: ``table`` is a word of SQL.
_SOURCES = ("sensors", "tuple", "address", "state", "why", "rows", "rows_per_s", "rate", "errors", "heard")
_COLUMNS = ("sensors", "field", "type", "unit", "bytes", "least", "greatest")


def source_tables(
    tables: Iterable[SensorTable], states: Mapping[Key, SourceState], seen: Callable[[int], Seen]
) -> dict[str, Table]:
    """Of those that are open, or have brought anything."""
    known = [(table, seen(table.number)) for table in tables if table.stream is not None]
    return {
        "sources": Table(_SOURCES, [row for table, of in known for row in _sources(table, of, states)]),
        "source_fields": Table(_COLUMNS, [row for table, of in known for row in _fields(table, of)]),
    }


def _sources(table: SensorTable, seen: Seen, states: Mapping[Key, SourceState]) -> Iterator[tuple[Any, ...]]:
    own = {number: state for (of, number), state in states.items() if of == table.number}
    for number in sorted({*own, *seen.sources}):
        state, brought = own.get(number), seen.sources.get(number)
        said = (
            (state.address, state.state, state.why or None) if state is not None else (None, "closed", None)
        )
        counted = (
            (brought.rows, brought.rows_per_s, brought.rate, brought.errors)
            if brought is not None
            else (0, 0.0, None, 0)
        )
        yield table.name, number, *said, *counted, state.last if state is not None else None


def _fields(table: SensorTable, seen: Seen) -> Iterator[tuple[Any, ...]]:
    """Static columns and fields, by their names in the log."""
    stream = table.stream
    assert stream is not None
    columns = [(one.name, one.type, one.unit) for one in table.columns if not one.fields]
    columns += [(f"{stream.name}.{one.name}", one.full_type, one.unit) for one in stream.fields]
    for name, kind, unit in columns:
        key = name.lower()
        least, greatest = seen.ranges.get(key, (None, None))
        yield table.name, name, kind.upper(), unit, seen.widths.get(key), least, greatest
