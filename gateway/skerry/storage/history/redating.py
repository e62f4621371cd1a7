"""Files of the past dated again, once it is known what the clock was wrong by that their rows were dated by.

Rows go from the file of one day into another's: all files that this changes are written anew beside the old ones, the manifest is then
replaced, which decides, and after that they take the old ones' places. A crash before the manifest leaves what there was, one after it is
made good at the next start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skerry.storage.history.damaged_files import naming
from skerry.storage.history.day_files import DAY_US, GROUP_ROWS, day_text, day_writer, fitted
from skerry.storage.history.manifest import DayFile, Manifest, directory_of, part_of, path_of
from skerry.storage.history.samples_apart import SamplesApart
from skerry.storage.history.source_layout import is_of_sources
from skerry.storage.replacement import UNFINISHED, sync_directory

#: Columns that the clock has dated.
_DATED = ("time", "arrival")
#: Rows ``first`` .. ``end`` - 1 of the log, and what has to be added to their times in files, in us.
Correction = tuple[int, int, int]


def redated(path: Path, manifest: Manifest, corrections: Sequence[Correction]) -> Manifest:
    """The manifest of a history below ``path`` whose rows' times are corrected, its ``moving`` the files that are written beside others.
    OSError (a full disk), DamagedError: nothing has changed."""
    changed = [
        name
        for name, file in manifest.files.items()
        # Sources say themselves of which time their rows are.
        if not is_of_sources(directory_of(name))
        and any(first <= file.last and file.first < end for first, end, _ in corrections)
    ]
    outputs: dict[str, _Output] = {}
    files = {name: file for name, file in manifest.files.items() if name not in changed}
    try:
        with ExitStack() as stack:
            for name in changed:
                _distribute(path, name, corrections, outputs, stack)
            # Rows that days have already stay with those that come.
            for name in sorted(outputs.keys() & files.keys()):
                _distribute(path, name, (), outputs, stack)
        for name, output in outputs.items():
            files[name] = output.end()
    except BaseException:
        for output in outputs.values():
            output.unfinished.unlink(missing_ok=True)
        raise
    for directory in {output.unfinished.parent for output in outputs.values()}:
        sync_directory(directory)
    return replace(manifest, files=files, moving=sorted(outputs))


def move(path: Path, manifest: Manifest) -> None:
    """Put the files that a manifest has moving in their places."""
    for name in manifest.moving:
        unfinished = path / (name + UNFINISHED)
        if unfinished.exists():
            unfinished.replace(path / name)
    for directory in {(path / name).parent for name in manifest.moving}:
        sync_directory(directory)


@dataclass
class _Output:
    """A day's file as it will be."""

    unfinished: Path
    file: IO[bytes]
    writer: pq.ParquetWriter
    rows: int = 0
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    apart: SamplesApart = field(default_factory=SamplesApart)

    def write(self, table: pa.Table) -> None:
        self.writer.write_table(table, row_group_size=GROUP_ROWS)
        self.rows += table.num_rows
        self.apart.add(table)
        for name in ("row", "time"):
            found = pc.min_max(table.column(name).cast(pa.int64())).as_py()
            least, most = self.bounds.get(name, (found["min"], found["max"]))
            self.bounds[name] = min(least, found["min"]), max(most, found["max"])

    def end(self) -> DayFile:
        bounds = *self.bounds["row"], *self.bounds["time"]
        return DayFile(self.rows, self.unfinished.stat().st_size, *bounds, *self.apart.found())


def _distribute(
    path: Path,
    name: str,
    corrections: Sequence[Correction],
    outputs: dict[str, _Output],
    stack: ExitStack,
) -> None:
    """Write a file's rows to the days that they belong to."""
    with naming(path / name), pq.ParquetFile(path / name) as file:
        schema = file.schema_arrow
        for batch in file.iter_batches(batch_size=GROUP_ROWS):
            table = _corrected(pa.Table.from_batches([batch]), corrections)
            for day, part in _by_day(table):
                target = path_of(directory_of(name), day_text(day), part_of(name))
                if target not in outputs:
                    outputs[target] = _output(path / target, schema, stack)
                outputs[target].write(fitted(part, outputs[target].writer.schema))


def _output(target: Path, schema: pa.Schema, stack: ExitStack) -> _Output:
    if target.exists():
        with naming(target):
            schema = pa.unify_schemas([schema, pq.read_schema(target)])
    unfinished = target.with_name(target.name + UNFINISHED)
    file = unfinished.open("wb")
    # Ends of the writer, of what the system holds, and of the file, in this order.
    stack.callback(file.close)
    stack.callback(lambda: os.fsync(file.fileno()))
    stack.callback(file.flush)
    writer = stack.enter_context(day_writer(file, schema))
    return _Output(unfinished, file, writer)


def _corrected(table: pa.Table, corrections: Sequence[Correction]) -> pa.Table:
    rows = table.column("row").to_numpy()
    by = np.zeros(len(rows), np.int64)
    for first, end, us in corrections:
        by[(rows >= first) & (rows < end)] = us
    if not by.any():
        return table
    for name in _DATED:
        place = table.schema.get_field_index(name)
        kept = table.schema.field(place)
        times = table.column(name).cast(pa.int64()).to_numpy() + by
        table = table.set_column(place, kept, pa.array(times).cast(kept.type))
    return table


def _by_day(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    days: npt.NDArray[np.int64] = table.column("time").cast(pa.int64()).to_numpy() // DAY_US
    for day in np.unique(days).tolist():
        yield day, table.filter(pa.array(days == day))
