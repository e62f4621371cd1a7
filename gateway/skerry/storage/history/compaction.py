"""Rows of the log brought into the files of their days: what one pass of compaction does, from what it is told alone, so that any process
may do it. What the files are worth the manifest says that it returns, and its caller keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skerry.storage.history import layout, source_layout
from skerry.storage.history.damaged_files import naming
from skerry.storage.history.day_files import (
    BLOCK_GROUPS,
    DAY_US,
    FILE_ROWS,
    GROUP_ROWS,
    day_text,
    day_writer,
    fitted,
)
from skerry.storage.history.manifest import DayFile, Manifest, path_of
from skerry.storage.history.redating import Correction, redated
from skerry.storage.history.samples_apart import SamplesApart
from skerry.storage.log import stream_log
from skerry.storage.log.dating import Shift, shifted
from skerry.storage.log.record import Kind, Records
from skerry.storage.replacement import Replacement
from skerry.streams.intervals import authoritative, is_plain
from skerry.streams.stream import Stream


@dataclass(frozen=True)
class Done:
    """``manifest``: of the files as they are now; ``trouble``: what people have to be told of the rows."""

    manifest: Manifest
    trouble: str | None = None


@dataclass(frozen=True)
class Pass:
    """Rows of the log below ``log`` from the manifest's last on, up to ``stop`` - 1, are to be brought into the files below ``path``.
    ``shifts``: what is added to their times; ``streams``: all that they may be of, with what is known of when they were authoritative."""

    path: Path
    log: Path
    manifest: Manifest
    stop: int
    shifts: Sequence[Shift]
    streams: Sequence[Stream]

    def done(self) -> Done:
        """The rows are in the files. OSError (a full disk, rows that are not there), DamagedError: the manifest that there was is right."""
        start = self.manifest.rows
        records = stream_log.read(self.log, start, self.stop)
        if len(records) < self.stop - start:
            missing = f"rows {start + len(records)} to {self.stop - 1} are not there"
            raise OSError(f"{self.log}: {missing}: it was taken away, or cut, while the gateway ran")
        manifest = replace(
            self.manifest, files=dict(self.manifest.files), streams=dict(self.manifest.streams)
        )
        manifest.shifts = {str(first): us for first, _, us in self.shifts if us}
        records = shifted(start, records, self.shifts)
        for directory, table in tables(start, records, self.streams, manifest.streams):
            days = pc.divide(table.column("time").cast(pa.int64()), DAY_US)
            for day in pc.unique(days).to_pylist():
                name = _file_to_go_on(self.manifest, directory, day_text(day))
                part = table.filter(pc.equal(days, day))
                manifest.files[name] = written(self.path / name, self.manifest.files.get(name), start, part)
        days_of_records = records["arrival"] // DAY_US
        for directory, table in source_layout.tables(start, records, self.log, manifest.streams):
            # A record is of one day, that of its arrival, whatever times its rows have.
            days = pa.array(days_of_records[table.column(source_layout.ROW).to_numpy() - start])
            for day in pc.unique(days).to_pylist():
                name = _file_to_go_on(self.manifest, directory, day_text(day))
                part = table.filter(pc.equal(days, day))
                manifest.files[name] = written(self.path / name, self.manifest.files.get(name), start, part)
        manifest.rows = self.stop
        return Done(manifest, _lost(start, records))


@dataclass(frozen=True)
class Redating:
    """Rows in files below ``path`` are to be dated again, ``shifts``: what is added to all times then."""

    path: Path
    manifest: Manifest
    corrections: Sequence[Correction]
    shifts: Sequence[Shift]

    def done(self) -> Done:
        """The manifest's ``moving`` are the files that lie beside others now. OSError, DamagedError: nothing has changed."""
        manifest = redated(self.path, self.manifest, self.corrections)
        manifest.shifts = {str(first): us for first, _, us in self.shifts if us}
        return Done(manifest)


Task = Pass | Redating


def _lost(start: int, records: Records) -> str | None:
    """Which of the log's rows from number ``start`` on are damaged, for people."""
    lost = np.flatnonzero(records["stream"] == 0) + start
    if not len(lost):
        return None
    rows = f"the rows {lost[0]} to {lost[-1]} of the log"
    return f"{len(lost)} of {rows} are damaged: nobody gets them, and they are in no file"


def _file_to_go_on(manifest: Manifest, directory: str, day: str) -> str:
    part = manifest.last_part(directory, day)
    if part is None:
        return path_of(directory, day)
    name = path_of(directory, day, part)
    return path_of(directory, day, part + 1) if manifest.files[name].rows >= FILE_ROWS else name


def written(path: Path, known: DayFile | None, start: int, added: pa.Table) -> DayFile:
    """Rewrite a day's last file, or begin one: its rows from before this pass, and those that are added."""
    path.parent.mkdir(exist_ok=True)
    with naming(path):
        old = pq.ParquetFile(path) if known is not None or path.exists() else None
    schema = added.schema if old is None else pa.unify_schemas([added.schema, old.schema_arrow])
    rows, apart = 0, SamplesApart()
    with (
        Replacement(path) as file,
        day_writer(file, schema) as writer,
    ):
        for block in _blocks(_parts(path, old, start, added), schema):
            writer.write_table(block, row_group_size=GROUP_ROWS)
            rows += block.num_rows
            apart.add(block)
    times = pc.min_max(added.column("time").cast(pa.int64())).as_py()
    first, last = added.column("row")[0].as_py(), added.column("row")[-1].as_py()
    since, until = times["min"], times["max"]
    if known is not None:
        first, since, until = min(first, known.first), min(since, known.since), max(until, known.until)
    return DayFile(rows, path.stat().st_size, first, last, since, until, *apart.found())


def tables(
    start: int, records: Records, streams: Sequence[Stream], described: dict[str, str]
) -> Iterator[tuple[str, pa.Table]]:
    """Records as tables in the files' columns: (directory, rows in ascending order). ``described`` gets what directories hold."""
    by_number = {stream.number: stream for stream in streams}
    # Several streams share a directory.
    found: dict[str, list[pa.Table]] = {}
    for number in np.unique(records["stream"]):
        stream = by_number.get(int(number))
        if stream is None:
            continue
        places = np.flatnonzero((records["stream"] == number) & (records["kind"] != Kind.PART))
        if not is_plain(stream.mote_query):
            directory = layout.directory_of(stream, streams)
            described.setdefault(directory, layout.describe(stream.mote_query))
            table = layout.stream_table(places + start, records[places], stream)
            found.setdefault(directory, []).append(table)
            continue
        network_ms = records["epoch"][places].astype(np.int64) * stream.mote_query.period_ms
        chosen = authoritative(stream, streams, network_ms)
        for directory, part in ((layout.SENSORS, places[chosen]), (layout.BESIDE, places[~chosen])):
            if len(part):
                described.setdefault(directory, layout.MEANINGS[directory])
                table = layout.sensors_table(part + start, records[part], stream)
                found.setdefault(directory, []).append(table)
    for directory, parts in found.items():
        yield directory, pa.concat_tables(parts).sort_by("row")


def _parts(path: Path, old: pq.ParquetFile | None, start: int, added: pa.Table) -> Iterator[pa.Table]:
    """Rows of a file before a row of the log, then others, in pieces. Raises DamagedError."""
    if old is not None:
        with naming(path), old:
            for batch in old.iter_batches(batch_size=GROUP_ROWS):
                table = pa.Table.from_batches([batch])
                yield table.filter(pc.less(table.column("row"), start))
    yield added


def _blocks(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """The same rows, in blocks of several row groups. In those that are complete each mote's rows stand together, so that who asks for one
    mote finds it in few row groups; the last block is in the order of the log."""
    size = BLOCK_GROUPS * GROUP_ROWS
    waiting, there = list[pa.Table](), 0
    for part in parts:
        left = fitted(part, schema)
        while there + left.num_rows >= size:
            whole = pa.concat_tables([*waiting, left.slice(0, size - there)])
            yield _by_mote(whole)
            left = left.slice(size - there)
            waiting, there = [], 0
        if left.num_rows:
            waiting.append(left)
            there += left.num_rows
    if waiting:
        yield pa.concat_tables(waiting)


def _by_mote(table: pa.Table) -> pa.Table:
    if "nodeid" not in table.column_names:
        return table
    motes = table.column("nodeid").fill_null(0).to_numpy()
    # A block that was complete before is as it will be.
    if (motes[1:] >= motes[:-1]).all():
        return table
    return table.take(pa.array(np.lexsort([table.column("row").to_numpy(), motes])))
