"""Rows of a stream, with the columns that the files of the past have: those of days that have been compacted from there, newer ones from
the log. The row's number decides which, so that each comes once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql.datasource import InputPartition

from pyspark_skerry.bounds import Bounds
from pyspark_skerry.reading import PIECE_ROWS, LogRows, LostError, Reading, records_of
from skerry.storage.history.compaction import tables
from skerry.storage.history.damaged_files import damaged, naming
from skerry.storage.history.day_files import DAY_US, GROUP_ROWS, day_text, fitted
from skerry.storage.history.manifest import DayFile, Manifest, directory_of
from skerry.storage.history.snapshot import HISTORY, Selection, Snapshot, settled_manifest
from skerry.storage.log.dating import noted_shifts, shifted
from skerry.storage.log.stream_log import RowsGoneError
from skerry.storage.state import DataError
from skerry.streams.stream import roots_of

#: Rows of a file that one task reads, about.
FILE_ROWS = 1_048_576
#: How often rows are looked for that leave the log meanwhile.
_ATTEMPTS = 5
#: What columns are made of that files do not have.
_MADE = {"root": ("session",), "epoch": ("stream", "network_ms")}
#: Columns that come first, of those that there are.
_FIRST = ("row", "root", "session", "stream", "nodeid", "epoch", "time", "arrival", "network_ms")


class FileRows(InputPartition):
    """The rows ``start`` .. ``end`` - 1 that a file of the past has, as long as its rows are dated as by ``shifts``."""

    def __init__(self, name: str, start: int, end: int, shifts: dict[str, int]) -> None:
        super().__init__((name, start, end))
        self.name, self.start, self.end, self.shifts = name, start, end, shifts


@dataclass(frozen=True, kw_only=True)
class StreamRows(Reading):
    """Rows of what option ``stream`` names."""

    selection: Selection

    def whole_schema(self, snapshot: Snapshot) -> pa.Schema:
        """Columns of the files, and those that are made of them."""
        kept = snapshot.schema(self.selection)
        made = [pa.field(name, pa.int64()) for name in _MADE if name not in kept.names]
        fields = {field.name: field for field in [*made, *kept]}
        first = [name for name in _FIRST if name in fields]
        return pa.schema([fields[name] for name in dict.fromkeys([*first, *fields])])

    def first(self, snapshot: Snapshot) -> int:
        """The first row of files, or of those that are not compacted yet."""
        files = snapshot.files(self.selection).values()
        return min((f.first for f in files if self.bounds.may_have(f)), default=snapshot.manifest.rows)

    def dropped(self, snapshot: Snapshot) -> int:
        """By the manifest."""
        return snapshot.dropped(self.selection)

    def has_lost(self, snapshot: Snapshot, since_us: int) -> bool:
        """By the last day that went."""
        gone = snapshot.manifest.gone
        return bool(self.dropped(snapshot)) and gone is not None and day_text(since_us // DAY_US) <= gone

    def plan(self, snapshot: Snapshot, start: int, end: int) -> list[InputPartition]:
        """Files that may have some, of large ones parts, and the log's newest part."""
        compacted, bounds = snapshot.manifest.rows, self.bounds.rows(start, end)
        parts: list[InputPartition] = []
        for name, file in snapshot.files(self.selection).items():
            if bounds.may_have(file):
                low, high = max(start, file.first), min(end, file.last + 1, compacted)
                parts += _shares(name, file, low, high, snapshot.manifest.shifts)
        low, high = max(start, compacted, self.bounds.row or 0), end
        if self.bounds.row_end is not None:
            high = min(high, self.bounds.row_end)
        return parts + self.log_parts(low, high)

    def tables(self, partition: InputPartition, names: Sequence[str]) -> Iterator[pa.Table]:
        """In the files' columns."""
        if isinstance(partition, FileRows):
            yield from self._of_file(partition, names)
        else:
            assert isinstance(partition, LogRows)
            for start in range(partition.start, partition.end, PIECE_ROWS):
                yield self._newest(start, min(start + PIECE_ROWS, partition.end), names)

    # ---- from files ----

    def _of_file(self, part: FileRows, names: Sequence[str]) -> Iterator[pa.Table]:
        snapshot = self.snapshot()
        try:
            yield from self._scanned(snapshot, part, names)
        except FileNotFoundError:
            manifest = settled_manifest(self.data)
            self._check_dating(manifest, part)
            if part.name in manifest.files:
                raise damaged(self.data / HISTORY / part.name, "it is gone") from None
            if self.fail_on_loss:
                dropped = manifest.dropped.get(directory_of(part.name), part.end)
                raise self.lost(self.snapshot(), f"row {part.start}", dropped) from None
        self._check_dating(Manifest.load(self.data / HISTORY), part)

    def _check_dating(self, manifest: Manifest, part: FileRows) -> None:
        """Rows may have gone into the file of another day since tasks shared them out."""
        if manifest.moving or manifest.shifts != part.shifts:
            raise DataError(
                f"{self.data / HISTORY}: its files have been dated again while they were read, as the clock was set: read them again"
            )

    def _scanned(self, snapshot: Snapshot, part: FileRows, names: Sequence[str]) -> Iterator[pa.Table]:
        schema = snapshot.schema(self.selection)
        path = self.data / HISTORY / part.name
        with naming(path):
            scanner = ds.dataset(str(path), schema=schema, format="parquet").scanner(
                columns=_needed(schema, names),
                filter=self._bounds().rows(part.start, part.end).expression(),
                batch_size=GROUP_ROWS,
                use_threads=False,
            )
            for batch in scanner.to_batches():
                yield _made(pa.Table.from_batches([batch]), snapshot, names)

    # ---- from the log ----

    def _newest(self, start: int, end: int, names: Sequence[str]) -> pa.Table:
        """Rows of the log, or of the files if they have left it since tasks shared them out."""
        for _ in range(_ATTEMPTS):
            snapshot = self.snapshot()
            try:
                return self._of_log(snapshot, start, end, names)
            except RowsGoneError as error:
                if snapshot.manifest.rows < error.first:
                    raise LostError(f"{snapshot.log}: {error}, and it is in no file") from None
            parts = self.plan(snapshot, start, min(end, snapshot.manifest.rows))
            found = [table for part in parts for table in self.tables(part, names)]
            if snapshot.manifest.rows < end:
                found.append(self._newest(snapshot.manifest.rows, end, names))
            if found:
                return pa.concat_tables(found).sort_by("row") if "row" in names else pa.concat_tables(found)
        return _made(snapshot.schema(self.selection).empty_table(), snapshot, names)

    def _of_log(self, snapshot: Snapshot, start: int, end: int, names: Sequence[str]) -> pa.Table:
        schema = snapshot.schema(self.selection)
        records = records_of(snapshot, start, end).copy()
        records["stream"][~np.isin(records["stream"], list(snapshot.numbers(self.selection)))] = 0
        records = shifted(start, records, noted_shifts(self.data, end))
        found = [
            fitted(table, schema)
            for directory, table in tables(start, records, snapshot.all, {})
            if directory in self.selection.directories
        ]
        if not found:
            return _made(schema.empty_table(), snapshot, names)
        table = pa.concat_tables(found)
        return _made(table.filter(self._bounds().expression()).sort_by("row"), snapshot, names)

    def _bounds(self) -> Bounds:
        number = self.selection.number
        return self.bounds if number is None else self.bounds.within(Bounds(streams=frozenset([number])))


def _shares(name: str, file: DayFile, start: int, end: int, shifts: dict[str, int]) -> list[InputPartition]:
    """Rows of a file in parts of about the same size."""
    if start >= end:
        return []
    share = (end - start) / max(1, file.last + 1 - file.first)
    count = max(1, round(share * file.rows / FILE_ROWS))
    bounds = [start + (end - start) * i // count for i in range(count + 1)]
    return [FileRows(name, low, high, shifts) for low, high in pairwise(bounds)]


def _needed(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    """Columns of a file that these are made of."""
    wanted = [name for name in names if name in schema.names]
    wanted += [part for name in names if name not in schema.names for part in _MADE[name]]
    return list(dict.fromkeys(wanted))


def _made(table: pa.Table, snapshot: Snapshot, names: Sequence[str]) -> pa.Table:
    """A table with these columns, in this order, of one with those of files."""
    columns = {
        name: table.column(name) if name in table.column_names else _column(name, table, snapshot)
        for name in names
    }
    return pa.table(columns) if columns else table.select([])


def _column(name: str, table: pa.Table, snapshot: Snapshot) -> pa.Array:
    if name == "root":
        return pa.array(roots_of(table.column("session").to_numpy()))
    # Of a plain row the epoch is what its network time is a multiple of.
    numbers, place = np.unique(table.column("stream").to_numpy(), return_inverse=True)
    streams = [snapshot.streams.get(number) for number in numbers.tolist()]
    periods = pa.array([stream.mote_query.period_ms if stream else None for stream in streams], pa.int64())
    return pc.divide(table.column("network_ms").combine_chunks(), periods.take(pa.array(place)))
