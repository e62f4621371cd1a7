"""The history on disk: rows of the log compacted to a Parquet file for each stream and day, and how long they are kept.

A day's file is replaced as a whole, and the manifest after all files of a pass: a pass that a crash cut short is done again from
the manifest's row on, and rows that it had written already are told by their numbers. So no row is lost or doubled, whatever the
moment, and other tools read complete files at any time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skerry.storage.history.compaction import Done, Pass, Redating, Task
from skerry.storage.history.compaction_process import sole_writer
from skerry.storage.history.day_files import day_text
from skerry.storage.history.manifest import NAME, Manifest, day_of
from skerry.storage.history.redating import move
from skerry.storage.history.retention import GIGABYTE, Retention
from skerry.storage.log import stream_log
from skerry.storage.log.dating import Dating, Shift
from skerry.storage.log.record import Records
from skerry.storage.state import DataError
from skerry.streams.stream import Stream

log = logging.getLogger(__name__)

#: Rows of the log that one pass takes: what it needs in memory stays below 500 MB.
PASS_ROWS = 524_288


class History:
    """One gateway's. Passes run one at a time; readers need no lock."""

    def __init__(
        self,
        data: Path,
        retention: Retention | None = None,
        dating: Dating | None = None,
        perform: Callable[[Task], Done] = lambda task: task.done(),
    ) -> None:
        """``dating``: by which clock the log's rows were dated; None: by one that is right. ``perform`` does what takes time by the row."""
        self.path = data / "history"
        self.retention = retention or Retention()
        self._dating, self._perform = dating, perform
        #: Goes up when files begin to change their places and when they have: it is odd meanwhile.
        self._moves = 0
        self.path.mkdir(parents=True, exist_ok=True)
        self.manifest = Manifest.load(self.path)
        self._lock = threading.Lock()
        with sole_writer(self.path):
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
            start = self.manifest.rows
            while self.manifest.rows < end:
                stop = min(self.manifest.rows + PASS_ROWS, end)
                shifts = self.shifts(stop)
                done = self._perform(Pass(self.path, log_path, self.manifest, stop, shifts, streams))
                if done.trouble is not None:
                    log.warning("history: %s", done.trouble)
                done.manifest.save(self.path)
                self.manifest = done.manifest
            return max(0, end - start)

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
        manifest = self._perform(Redating(self.path, self.manifest, corrections, shifts)).manifest
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
