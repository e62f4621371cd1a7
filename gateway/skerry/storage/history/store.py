"""The history on disk: rows of the log compacted to a Parquet file for each stream and day, and how long they are kept.

A day's file is replaced as a whole, and the manifest after all files of a pass: a pass that a crash cut short is done again from
the manifest's row on, and rows that it had written already are told by their numbers. So no row is lost or doubled, whatever the
moment, and other tools read complete files at any time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skerry.storage.history import layout
from skerry.storage.history.damaged_files import naming
from skerry.storage.history.day_files import DAY_US, GROUP_ROWS, day_text, fitted
from skerry.storage.history.manifest import NAME, DayFile, Manifest, day_of, path_of
from skerry.storage.history.redating import move, redated
from skerry.storage.history.retention import GIGABYTE, Retention
from skerry.storage.log import stream_log
from skerry.storage.log.dating import Dating, Shift
from skerry.storage.log.record import Kind, Records
from skerry.storage.replacement import Replacement
from skerry.storage.state import DataError
from skerry.streams.intervals import authoritative, is_plain
from skerry.streams.stream import Stream

log = logging.getLogger(__name__)

#: Rows of the log that one pass takes: what it needs in memory stays below 500 MB.
PASS_ROWS = 524_288


class History:
    """One gateway's. Passes run one at a time; readers need no lock."""

    def __init__(self, data: Path, retention: Retention | None = None, dating: Dating | None = None) -> None:
        """``dating``: by which clock the log's rows were dated; None: by one that is right."""
        self.path = data / "history"
        self.retention = retention or Retention()
        self._dating = dating
        #: Goes up when files begin to change their places and when they have: it is odd meanwhile.
        self._moves = 0
        self.path.mkdir(parents=True, exist_ok=True)
        self.manifest = Manifest.load(self.path)
        self._lock = threading.Lock()
        self._end_move()
        self._leave_lost(stream_log.first(data / stream_log.DIRECTORY))
        self._remove_unlisted()

    def _leave_lost(self, first: int) -> None:
        """Go on without files that somebody has taken away, and without rows that are in no file and not in the log either, which begins
        at the row ``first``. Raises DataError where it is the manifest that is missing: the files would be removed as unknown."""
        if not (self.path / NAME).exists() and first and any(self.path.glob("*/*.parquet")):
            raise DataError(
                f"{self.path / NAME} is gone, and what the files beside it hold is known from it alone: put it back from a copy, or take "
                "the files away"
            )
        gone = sorted(name for name in self.manifest.files if not (self.path / name).exists())
        if gone:
            log.warning("history: gone, with their rows: %s", ", ".join(gone))
            self.manifest = self.manifest.without(gone)
        if self.manifest.rows < first:
            log.warning(
                "history: rows %d to %d are in no file, and not in the log", self.manifest.rows, first - 1
            )
            dropped = dict.fromkeys(self.manifest.streams, first)
            self.manifest = replace(self.manifest, rows=first, dropped=dropped)

    def _remove_unlisted(self) -> None:
        """What a crash left: files half written, new ones whose pass did not end, dropped ones."""
        for file in self.path.rglob("*"):
            if file.is_file() and file.name != "manifest.json":
                name = file.relative_to(self.path).as_posix()
                if name not in self.manifest.files and file.suffix in (".parquet", ".new"):
                    file.unlink()

    def compact(self, log_path: Path, end: int, streams: Sequence[Stream]) -> int:
        """Bring the rows of the log before ``end``, which are durable, into the files; returns how many there were.

        ``streams``: all that the rows may be of, with what is known of when they were authoritative. OSError (a full disk): what was
        compacted before stays, nothing is lost.
        """
        with self._lock:
            self._redate()
            done = 0
            while self.manifest.rows < end:
                start, stop = self.manifest.rows, min(self.manifest.rows + PASS_ROWS, end)
                records = stream_log.read(log_path, start, stop)
                if len(records) < stop - start:
                    missing = f"rows {start + len(records)} to {stop - 1} are not there"
                    raise OSError(f"{log_path}: {missing}: it was taken away, or cut, while the gateway ran")
                self._pass(start, records, streams)
                done += stop - start
            return done

    def _redate(self) -> None:
        """Date rows of files again that were dated by a clock that was wrong."""
        if self._dating is None:
            return
        shifts = self._dating.shifts(self.manifest.rows)
        had = self.manifest.shifts
        corrections = [
            (first, end, us - had.get(str(first), 0))
            for first, end, us in shifts
            if us != had.get(str(first), 0)
        ]
        if not corrections:
            return
        for first, end, us in corrections:
            log.warning("history: rows %d to %d are dated again, by %+.1f s", first, end - 1, us / 1e6)
        manifest = redated(self.path, self.manifest, corrections)
        manifest.shifts = {str(first): us for first, _, us in shifts if us}
        self._moves += 1
        try:
            manifest.save(self.path)
            self.manifest = manifest
            self._end_move()
        finally:
            self._moves += 1

    def _end_move(self) -> None:
        """Files that were dated again take their places, and those that have no rows left go."""
        if not self.manifest.moving:
            return
        move(self.path, self.manifest)
        self._remove_unlisted()
        manifest = replace(self.manifest, moving=[])
        manifest.save(self.path)
        self.manifest = manifest

    def due(self) -> bool:
        """Whether rows of files are to be dated again."""
        if self._dating is None:
            return False
        manifest = self.manifest
        return any(
            us != manifest.shifts.get(str(first), 0) for first, _, us in self._dating.shifts(manifest.rows)
        )

    def settled(self) -> int:
        """How often files have changed their places, when they do not: a reader that finds the same before and after has read each row
        once."""
        moves = self._moves
        if moves % 2:
            with self._lock:
                moves = self._moves
        return moves

    def shifts(self, row: int) -> list[Shift]:
        """What is to be added to the times of the log's rows before ``row``, as files have them."""
        return [] if self._dating is None else self._dating.shifts(row)

    def dated(self, start: int, records: Records) -> Records:
        """Records of the log from number ``start`` on, dated as files have them."""
        return records if self._dating is None else self._dating.dated(start, records)

    def _pass(self, start: int, records: Records, streams: Sequence[Stream]) -> None:
        manifest = replace(
            self.manifest, files=dict(self.manifest.files), streams=dict(self.manifest.streams)
        )
        shifts = self._dating.shifts(start + len(records)) if self._dating is not None else []
        manifest.shifts = {str(first): us for first, _, us in shifts if us}
        for directory, table in tables(start, self.dated(start, records), streams, manifest.streams):
            days = pc.divide(table.column("time").cast(pa.int64()), DAY_US)
            for day in pc.unique(days).to_pylist():
                name = path_of(directory, day_text(day))
                part = table.filter(pc.equal(days, day))
                manifest.files[name] = self._write(name, start, part)
        lost = np.flatnonzero(records["stream"] == 0) + start
        if len(lost):
            log.warning(
                "history: %d of the rows %d to %d of the log are damaged: nobody gets them, and they are in no file",
                len(lost),
                lost[0],
                lost[-1],
            )
        manifest.rows = start + len(records)
        manifest.save(self.path)
        self.manifest = manifest

    def _write(self, name: str, start: int, added: pa.Table) -> DayFile:
        """Rewrite a day's file: its rows from before this pass, and those that are added."""
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        with naming(path):
            old = pq.ParquetFile(path) if name in self.manifest.files or path.exists() else None
        schema = added.schema if old is None else pa.unify_schemas([added.schema, old.schema_arrow])
        known = self.manifest.files.get(name)
        since, until = (known.since, known.until) if known is not None else (1 << 62, -(1 << 62))
        rows, first = 0, None
        with (
            Replacement(path) as file,
            pq.ParquetWriter(file, schema, compression="zstd") as writer,
        ):
            for part in _parts(path, old, start, added):
                if part.num_rows:
                    writer.write_table(fitted(part, schema), row_group_size=GROUP_ROWS)
                    rows += part.num_rows
                    first = part.column("row")[0].as_py() if first is None else first
        times = pc.min_max(added.column("time").cast(pa.int64())).as_py()
        last = added.column("row")[-1].as_py()
        return DayFile(
            rows, path.stat().st_size, first or 0, last, min(since, times["min"]), max(until, times["max"])
        )

    def retain(self, log: stream_log.StreamLog | None, processed: int, now: float | None = None) -> None:
        """Drop what is beyond the limits. ``processed``: rows of the log that nobody but a reader that is behind still needs."""
        if self._dating is not None and self._dating.doubtful():
            return
        now = time.time() if now is None else now
        with self._lock:
            self._drop_days(now)
            if log is not None:
                self._drop_segments(log, min(processed, self.manifest.rows), now)

    def _drop_days(self, now: float) -> None:
        # Who keeps them for thousands of years asks for a day that no calendar has.
        oldest = day_text(int(max(0.0, now - self.retention.history_days * 86400)) // 86400)
        by_day: dict[str, list[str]] = {}
        for name in self.manifest.files:
            by_day.setdefault(day_of(name), []).append(name)
        left, dropped = self.manifest.bytes, set[str]()
        gone = self.manifest.gone
        for day, names in sorted(by_day.items()):
            if day >= oldest and left <= self.retention.history_bytes:
                break
            left -= sum(self.manifest.files[name].bytes for name in names)
            dropped.update(names)
            gone = max(day, gone or day)
        if not dropped:
            return
        log.info("history: %d files up to %s go", len(dropped), gone)
        manifest = replace(self.manifest.without(dropped), gone=gone)
        manifest.save(self.path)
        self.manifest = manifest
        for name in dropped:
            (self.path / name).unlink(missing_ok=True)

    def _drop_segments(self, log: stream_log.StreamLog, bound: int, now: float) -> None:
        log.end_idle(bound, now - self.retention.log_days * 86400)
        size, row = stream_log.size(log.path), 0
        for end, path in stream_log.full_segments(log.path):
            file = path.stat()
            old = file.st_mtime < now - self.retention.log_days * 86400
            if end > bound or not (old or size > self.retention.log_bytes):
                break
            size -= file.st_size
            row = end
        log.drop_before(row)

    def status(self, log_path: Path, end: int) -> dict[str, Any]:
        """For people: what there is and how long it is kept."""
        manifest = self.manifest
        days = sorted({day_of(name) for name in manifest.files})
        return {
            "compacted": manifest.rows,
            "waiting": end - manifest.rows,
            "files": len(manifest.files),
            "bytes": manifest.bytes,
            "from": days[0] if days else None,
            "to": days[-1] if days else None,
            "dropped_to": manifest.gone,
            "clock": self._dating.status() if self._dating is not None else None,
            "streams": manifest.streams,
            "log_from": stream_log.first(log_path),
            "log_bytes": stream_log.size(log_path),
            "keep": {
                "history_days": self.retention.history_days,
                "history_gb": self.retention.history_bytes / GIGABYTE,
                "log_days": self.retention.log_days,
                "log_gb": self.retention.log_bytes / GIGABYTE,
            },
        }


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
