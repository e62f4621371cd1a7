"""From the rows of the log to those that a group's operator gets: which are in time, whose they are, and their keys."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry.joins.conditions import evaluate
from skerry.joins.group import Group, Need, PoolKey
from skerry.joins.keys import keys_of
from skerry.joins.progress import Bool, Course, Int64, Progress
from skerry.joins.rows import KEYED, Rows, UInt64

#: Columns that each stream's rows have beside their fields: the number in the log, time and clock in µs, which of the stream's sources.
OWN = ("number", "time", "clock", "source")


class Intake:
    """``progress``: where the log's part begins that is taken next. Rows without a key are passed on where they count: in windows of rows,
    and where those that meet nobody are in an answer."""

    def __init__(self, group: Group, progress: Progress | None = None) -> None:
        self._group, self._count_unkeyed = group, group.has_rows or group.is_outer
        self.progress = progress or Progress(group.lateness_us)

    def take(self, streams: Mapping[str, pa.Table]) -> dict[PoolKey, Rows]:
        """The next rows of the log, by stream, each in the order of their numbers; ``clock`` and ``source`` may be missing."""
        self.progress.course = Course.decode([]) if self._group.is_outer else None
        admitted = self._admitted(streams)
        found = {}
        for pool, need in self._group.needs.items():
            stream, key = pool
            table = streams.get(stream)
            if table is not None and table.num_rows:
                found[pool] = self._rows(table, admitted[stream], key, need)
        return found

    def _admitted(self, streams: Mapping[str, pa.Table]) -> dict[str, Bool]:
        names = [name for name, table in streams.items() if table.num_rows]
        if not names:
            return {}
        tables = [streams[name] for name in names]
        times = np.concatenate([_whole(table, "time") for table in tables])
        clocks = np.concatenate(
            [_whole(table, "clock" if "clock" in table.column_names else "time") for table in tables]
        )
        places = np.repeat(np.arange(len(names)), [table.num_rows for table in tables])
        numbers = np.concatenate([_whole(table, "number") for table in tables])
        order = np.argsort(numbers, kind="stable")
        found = np.empty(len(times), np.bool_)
        found[order] = self.progress.admit(times[order], clocks[order], places[order], names, numbers[order])
        return {name: found[places == place] for place, name in enumerate(names)}

    def _rows(self, table: pa.Table, admitted: Bool, key: tuple[str, ...], need: Need) -> Rows:
        if not admitted.all():
            table = table.filter(pa.array(admitted))
        table = table.combine_chunks()
        length = table.num_rows

        def column(_: str, name: str) -> pa.Array:
            if name in ("time", "number"):
                return pa.array(_whole(table, name))
            return _single(table.column(name))

        keys, known = (
            keys_of([column("", name) for name in key], need.kinds)
            if key
            else (np.zeros(length, np.int64), np.ones(length, np.bool_))
        )
        passes: UInt64 = np.where(known, KEYED, np.uint64(0))
        anybody: Bool = np.zeros(length, np.bool_)
        for bit, conditions, _ in need.bits.values():
            true = np.ones(length, np.bool_)
            if conditions and length:
                values = reduce(pc.and_kleene, [evaluate(one, column, length) for one in conditions])
                true = values.fill_null(False).to_numpy(zero_copy_only=False)
            passes[true] |= np.uint64(1 << bit)
            anybody |= true
        source = _whole(table, "source") if "source" in table.column_names else np.zeros(length, np.int64)
        rows = Rows(
            _whole(table, "time"), _whole(table, "number"), source, keys, passes,
            {name: column("", name) for name in need.fields},
        )  # fmt: skip
        return rows.take(anybody if self._count_unkeyed else anybody & known)


def _whole(table: pa.Table, name: str) -> Int64:
    column = _single(table.column(name))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def _single(column: pa.ChunkedArray) -> pa.Array:
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else column.combine_chunks()
    )
