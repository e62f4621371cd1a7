"""Rows of ``sensors`` in the order of the log, from the files and, for what is not compacted yet, from the log itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skerry.execution.residual import Rows
from skerry.expressions import build
from skerry.planner.model.columns import IN_EVERY_ROW
from skerry.planner.model.plans import Column, MoteQuery
from skerry.storage.history import layout
from skerry.storage.history.compaction import tables
from skerry.storage.history.damaged_files import damaged, naming
from skerry.storage.history.engine.messages import SourceFile, Sources
from skerry.storage.history.layout import Int64
from skerry.storage.history.manifest import DayFile, Manifest
from skerry.storage.history.store import History
from skerry.storage.log import stream_log
from skerry.streams.stream import Stream, roots_of
from skerry_protocol.attributes import BY_NAME, BY_NUMBER

#: How often a read is begun anew because files or segments went meanwhile.
_ATTEMPTS = 5
#: What tells which rows they are.
_KEYS = ("row", "nodeid", "session", "stream", "network_ms")


@dataclass(frozen=True)
class Samples:
    """Rows of sensors, ready to be evaluated: ``rows.evaluate`` knows the attributes, times are network times."""

    numbers: Int64
    sessions: Int64
    streams: Int64
    rows: Rows

    def __len__(self) -> int:
        return len(self.numbers)


class Reader:
    """Reads for one query: the attributes that it needs, and rows sampled from ``since_us`` (UTC) on."""

    def __init__(
        self,
        history: History,
        log_path: Path,
        streams: Sequence[Stream],
        attributes: Collection[int],
        since_us: int,
    ) -> None:
        self._history, self._log_path, self._streams = history, log_path, streams
        self._since = pa.scalar(since_us, pa.int64())
        self._since_us = since_us
        columns = tuple(
            Column(BY_NUMBER[n].name, build.attribute(BY_NUMBER[n]), BY_NUMBER[n].format)
            for n in sorted(set(attributes) - IN_EVERY_ROW)
        )
        #: As of a mote query with a sample each ms.
        self._query = MoteQuery(1, False, False, columns, None)
        self._told = [name for name in (*layout.TALLIES, "via") if BY_NAME[name].number in attributes]
        tallies = [name for name in self._told if name in layout.TALLIES]
        self._columns = [*_KEYS, "time", *tallies, *(column.name for column in columns)]

    def first(self) -> int:
        """A row number before which there are no such rows."""
        manifest = self._history.manifest
        files = [file.first for file in self._files(manifest).values()]
        return min(files, default=manifest.rows)

    def read(self, start: int, end: int) -> Samples:
        """Rows numbered ``start`` .. ``end`` - 1."""
        for attempt in range(_ATTEMPTS):
            moves = self._history.settled()
            try:
                found = self._read(self._history.manifest, start, end)
                if self._history.settled() == moves:
                    return self._samples(found)
            except stream_log.RowsGoneError:
                # Rows are in a file before they leave the log.
                if attempt == _ATTEMPTS - 1:
                    raise
            except FileNotFoundError as error:
                # The gateway drops a file only when it is too old.
                if attempt == _ATTEMPTS - 1:
                    raise damaged(Path(error.filename), "it is gone") from None
        raise OSError(f"{self._history.path}: files are dated again and again")

    def _files(self, manifest: Manifest) -> dict[str, DayFile]:
        return {
            name: file
            for name, file in manifest.files.items()
            if name.startswith(f"{layout.SENSORS}/") and file.until >= self._since_us
        }

    def _read(self, manifest: Manifest, start: int, end: int) -> pa.Table:
        parts = [
            self._of_file(self._history.path / name, start, min(end, manifest.rows))
            for name, file in self._files(manifest).items()
            if file.first < end and file.last >= start
        ]
        begin = max(start, manifest.rows)
        if begin < end:
            records = stream_log.read(self._log_path, begin, end)
            parts += [
                table.select(self._columns)
                for directory, table in tables(begin, self._history.dated(begin, records), self._streams, {})
                if directory == layout.SENSORS
            ]
        table = pa.concat_tables(parts) if parts else _EMPTY
        if not table.num_rows:
            return table
        recent = pc.greater_equal(table.column("time").cast(pa.int64()), self._since)
        return table.filter(recent).sort_by("row")

    def _of_file(self, path: Path, start: int, end: int) -> pa.Table:
        """Of the row groups, which are in the order of rows, those that may have some."""
        with naming(path), pq.ParquetFile(path) as file:
            place = file.schema_arrow.get_field_index("row")
            bounds = [file.metadata.row_group(i).column(place).statistics for i in range(file.num_row_groups)]
            groups = [i for i, found in enumerate(bounds) if found.min < end and found.max >= start]
            there = [name for name in self._columns if name in file.schema_arrow.names]
            table = file.read_row_groups(groups, columns=there)
        rows = table.column("row")
        table = table.filter(pc.and_(pc.greater_equal(rows, start), pc.less(rows, end)))
        for name in self._columns:
            if name not in there:
                # A file from before skerry kept the column.
                kind = pa.float64() if _digits(name) else pa.int64()
                table = table.append_column(name, pa.nulls(table.num_rows, kind))
        return table.select(self._columns)

    def _samples(self, table: pa.Table) -> Samples:
        if not table.num_rows:
            empty = np.empty(0, np.int64)
            return Samples(empty, empty, empty, Rows(self._batch(_EMPTY), self._query))
        numbers, sessions, streams = (table.column(name).to_numpy() for name in ("row", "session", "stream"))
        rows = Rows(self._batch(table), self._query)
        rows.numbers, rows.sessions = numbers, sessions
        return Samples(numbers, sessions, streams, rows)

    def _batch(self, table: pa.Table) -> pa.RecordBatch:
        """In the integers that motes sent."""
        count = table.num_rows
        arrays = {"nodeid": _whole(table, "nodeid", 0), "epoch": _whole(table, "network_ms", 0)}
        arrays["utc_ms"] = pc.divide(table.column("time").cast(pa.int64()).combine_chunks(), 1000)
        for name in self._told:
            if name == "via":
                arrays[name] = pa.array(roots_of(table.column("session").to_numpy()))
            else:
                arrays[name] = _whole(table, name, 0) if count else pa.array([], pa.int64())
        for column in self._query.columns:
            arrays[column.name] = (
                _whole(table, column.name, column.digits) if count else pa.array([], pa.int64())
            )
        return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))

    # ---- for the engine ----

    def settled(self) -> int:
        """See :meth:`skerry.storage.history.store.History.settled`."""
        return self._history.settled()

    def unsettled(self) -> OSError:
        """What to raise when files go meanwhile again and again."""
        return OSError(f"{self._history.path}: files go or are dated again and again")

    def sources(self, end: int) -> Sources:
        """Where the rows before ``end`` are now."""
        manifest = self._history.manifest
        files = {
            name: file for name, file in self._files(manifest).items() if file.first < min(end, manifest.rows)
        }
        return Sources(
            tuple(
                SourceFile(
                    str(self._history.path / name),
                    file.rows,
                    file.since >= self._since_us and file.last < min(end, manifest.rows),
                    file.apart,
                    file.sessions,
                )
                for name, file in sorted(files.items())
            ),
            manifest.rows,
            str(self._log_path),
            min((file.first for file in files.values()), default=min(manifest.rows, end)),
            end,
            self._since_us,
            tuple(self._streams),
            tuple(self._history.shifts(end)),
        )

    def parts(self, start: int, end: int) -> dict[int, tuple[Int64, Rows]]:
        """The same by stream: numbers of the rows, and the rows."""
        samples = self.read(start, end)
        found = {}
        for number in np.unique(samples.streams).tolist():
            places = np.flatnonzero(samples.streams == number)
            rows = Rows(samples.rows.batch.take(pa.array(places)), self._query)
            rows.sessions = samples.sessions[places]
            found[number] = samples.numbers[places], rows
        return found

    def moments(self) -> Reader:
        """Of the same rows whose they are and when they were sampled, without attributes."""
        return Reader(self._history, self._log_path, self._streams, (), self._since_us)


def _digits(name: str) -> int:
    return BY_NAME[name].digits


def _whole(table: pa.Table, name: str, digits: int) -> pa.Array:
    column = table.column(name).combine_chunks()
    if not digits:
        return column.cast(pa.int64())
    known = column.is_valid().to_numpy(zero_copy_only=False)
    values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
    return pa.array(np.rint(values * 10.0**digits).astype(np.int64), mask=~known)


_EMPTY = pa.table({name: pa.array([], pa.int64()) for name in (*_KEYS, "time")})
