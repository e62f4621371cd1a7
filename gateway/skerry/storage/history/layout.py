"""What the files of the past hold: their directories, columns and units; records of the log → tables of them.

``sensors`` has a row for each mote and sample, with a column for each attribute; what nobody asked for then is NULL.
``beside`` has the same columns, for plain rows of mote queries that were not authoritative (:mod:`skerry.streams.intervals`).
Every other mote query (aggregates, windows, joins with storage points) has a directory of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skerry.execution.residual import to_array
from skerry.expressions import build
from skerry.expressions.evaluate import averages
from skerry.expressions.expression import Expr, Kind, render
from skerry.expressions.temporal import is_temporal
from skerry.planner.model.plans import Column, MoteQuery, Output
from skerry.storage.log.record import RECORD, Records
from skerry.streams.stream import Stream
from skerry_protocol.attributes import ATTRIBUTES, BY_NAME
from skerry_protocol.codes import Aggregate

SENSORS = "sensors"
BESIDE = "beside"
MEANINGS = {
    SENSORS: "a row for each mote and sample, NULL where nobody asked for an attribute",
    BESIDE: "rows of plain mote queries that ran beside the one that sensors has",
}
Int64 = npt.NDArray[np.int64]

_NO_ROWS, _NO_RECORDS = np.empty(0, np.int64), np.empty(0, RECORD)
_NO_STREAM = Stream(0, 0, 0, MoteQuery(1, False, False, (), None))
_UTC = pa.timestamp("us", tz="UTC")
_IN_EVERY_ROW = (BY_NAME["nodeid"].number, BY_NAME["epoch"].number)
#: Attributes of the sensors table, in the catalog's order.
READINGS = tuple(entry for entry in ATTRIBUTES if entry.number not in _IN_EVERY_ROW)
#: What a plain row says of itself: columns of the files, by where records have it.
TALLIES = {"combined": "motes", "left_out": "revision"}
_SUMS = (Aggregate.SUM, Aggregate.AVG)
_COUNTED = (*_SUMS, Aggregate.MIN, Aggregate.MAX)


def directory_of(stream: Stream, streams: Sequence[Stream]) -> str:
    """Of a stream that is no plain one: the same for equal mote queries, of whatever session."""
    return f"stream-{next(s.number for s in streams if s.mote_query == stream.mote_query)}"


def describe(query: MoteQuery) -> str:
    """A mote query in words, for the manifest."""
    columns = ", ".join(name for column in query.columns for name, _ in _named(column, 0))
    where = f" where {render(query.where)}" if query.where is not None else ""
    return f"{columns}{where}, every {query.period_ms} ms"


def sensors_table(rows: Int64, records: Records, stream: Stream) -> pa.Table:
    """Rows of a plain mote query. ``rows``: their numbers in the log."""
    columns = _common(rows, records, stream)
    columns |= _of_motes(records)
    places = {
        column.expr.operand: i
        for i, column in enumerate(stream.mote_query.columns)
        if column.expr is not None
    }
    for entry in READINGS:
        output = _output(entry.name, build.attribute(entry))
        i = places.get(entry.number)
        if i is None:
            empty = np.zeros(len(rows), np.int64)
            array = to_array(empty, np.zeros(len(rows), np.bool_), output)
        else:
            array = _values(records, i, output)
        columns[entry.name] = (_field(entry.name, array.type, entry.unit, entry.digits), array)
    return _table(columns)


def stream_table(rows: Int64, records: Records, stream: Stream) -> pa.Table:
    """Rows of any other mote query, with its columns as text of the language; of aggregates, epochs as they were revised."""
    columns = _common(rows, records, stream)
    query = stream.mote_query
    columns["epoch"] = (_field("epoch", pa.int64()), pa.array(records["epoch"].astype(np.int64)))
    for name in ("motes", "revision") if query.aggregate else ():
        columns[name] = (_field(name, pa.int64()), pa.array(records[name].astype(np.int64)))
    if not query.aggregate:
        columns |= _of_motes(records)
    for i, column in enumerate(query.columns):
        for name, output in _named(column, i):
            array = _state(records, i, column) if output is None else _final(records, i, column, output)
            unit, digits = (output.unit, output.digits) if output is not None else ("", 0)
            columns.setdefault(name, (_field(name, array.type, unit, digits), array))
    return _table(columns)


def sensors_schema() -> pa.Schema:
    """Columns of :func:`sensors_table`."""
    return sensors_table(_NO_ROWS, _NO_RECORDS, _NO_STREAM).schema


def stream_schema(stream: Stream) -> pa.Schema:
    """Columns of :func:`stream_table`."""
    return stream_table(_NO_ROWS, _NO_RECORDS, stream).schema


def _common(rows: Int64, records: Records, stream: Stream) -> dict[str, tuple[pa.Field, pa.Array]]:
    count = len(rows)
    network = records["epoch"].astype(np.int64) * stream.mote_query.period_ms
    return {
        "row": (_field("row", pa.int64()), pa.array(rows)),
        "time": (_field("time", _UTC), pa.array(records["sample"].astype(np.int64)).cast(_UTC)),
        "arrival": (_field("arrival", _UTC), pa.array(records["arrival"].astype(np.int64)).cast(_UTC)),
        "session": (_field("session", pa.int64()), pa.array(np.full(count, stream.session, np.int64))),
        "stream": (_field("stream", pa.int64()), pa.array(np.full(count, stream.number, np.int64))),
        "network_ms": (_field("network_ms", pa.int64(), "ms"), pa.array(network)),
    }


def _of_motes(records: Records) -> dict[str, tuple[pa.Field, pa.Array]]:
    """Whose rows they are, and what their queues did."""
    columns = {"nodeid": (_field("nodeid", pa.int64()), pa.array(records["node"].astype(np.int64)))}
    for name, field in TALLIES.items():
        # Rows that an older gateway stored say 0, and were never combined.
        values = np.maximum(records[field].astype(np.int64), 1 if name == "combined" else 0)
        columns[name] = (_field(name, pa.int64()), pa.array(values))
    return columns


def _named(column: Column, place: int) -> Iterator[tuple[str, Output | None]]:
    """The columns that users see of one of a mote query's: name and meaning; None: a state as it is."""
    kind, expr = column.aggregate, column.expr
    if not column.is_field:
        return
    if expr is not None and (kind in (Aggregate.NONE, Aggregate.GROUP) or is_temporal(expr)):
        yield render(expr), _output(render(expr), expr)
    elif kind is Aggregate.COUNT or kind in _COUNTED:
        # The state of a sum is that of an average, and each holds the count.
        kinds = _SUMS if kind in _SUMS else (kind,)
        for made in dict.fromkeys((*kinds, Aggregate.COUNT)):
            node = build.aggregate(made, expr)
            yield render(node), _output(render(node), node)
    else:
        argument = render(expr) if expr is not None else "*"
        yield f"{kind.name}({argument}) state {place}", None


def _output(name: str, expr: Expr) -> Output:
    return Output(name, expr, expr.unit if expr.kind is Kind.NUMBER else "", expr.digits)


def _values(records: Records, i: int, output: Output) -> pa.Array:
    known = (records["nulls"] >> i & 1) == 0
    return to_array(records["value"][:, i].astype(np.int64), known, output)


def _final(records: Records, i: int, column: Column, output: Output) -> pa.Array:
    """A column of a mote query as users see it, of aggregates what its states come to."""
    counts = records["count"][:, i].astype(np.int64)
    if column.aggregate is Aggregate.GROUP:
        return to_array(records["value"][:, i].astype(np.int64), counts > 0, output)
    if column.aggregate is Aggregate.NONE or is_temporal(output.expr):
        return _values(records, i, output)
    if output.expr.aggregate is Aggregate.COUNT:
        return pa.array(counts)
    values = records["value"][:, i].astype(np.int64)
    known = ((records["nulls"] >> i & 1) == 0) & (counts > 0)
    if output.expr.aggregate is Aggregate.AVG:
        values = averages(values, counts)
    return to_array(values, known, output)


def _state(records: Records, i: int, column: Column) -> pa.Array:
    """Cells of a summary as [count, value, …] (:mod:`skerry.expressions.aggregate_states`)."""
    cells = np.empty((len(records), 2 * column.cells), np.int64)
    cells[:, 0::2] = records["count"][:, i : i + column.cells]
    cells[:, 1::2] = records["value"][:, i : i + column.cells]
    return pa.array(list(cells), pa.list_(pa.int64()))


def _field(name: str, type: pa.DataType, unit: str = "", digits: int = 0) -> pa.Field:
    known = {"unit": unit, "digits": str(digits)} if unit or digits else None
    return pa.field(name, type, metadata=known)


def _table(columns: dict[str, tuple[pa.Field, pa.Array]]) -> pa.Table:
    schema = pa.schema([field for field, _ in columns.values()])
    return pa.Table.from_arrays([array for _, array in columns.values()], schema=schema)
