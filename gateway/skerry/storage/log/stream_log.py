"""The stream log: appended by one daemon, read by Spark's workers; each root's rows are a partition of it.

All rows have one sequence of numbers, which is their order, whatever partition they are in (:mod:`skerry.storage.log.partition`): a number
is a position in all of them at once. Rows are written in the order of their numbers, so that where one is, those before it are, too.
Older segments go once their rows are kept elsewhere (:mod:`skerry.storage.history`), and numbers go on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from skerry.storage.log.dating import Dating, MachineClock
from skerry.storage.log.last_rows import Latest
from skerry.storage.log.partition import Partition, Writer
from skerry.storage.log.record import RECORD, Int64, Records, numbered, put
from skerry.storage.replacement import sync_directory

_log = logging.getLogger(__name__)

DIRECTORY = "log"
#: A partition's directory: this, and its root's number.
ROOT = "root-"
#: A segment with so many rows is full (30 MB): the next batch begins another.
SEGMENT_ROWS = 262_144


class RowsGoneError(LookupError):
    """Rows were asked for that the log no longer has. ``first``: the first one it has."""

    def __init__(self, start: int, first: int) -> None:
        super().__init__(f"the log begins at row {first}: row {start} is no longer there")
        self.first = first


class StreamLog:
    """Appends records durably. ``rows`` is the number of the next one. Not for several threads at once, but for :meth:`drop_before` and
    :meth:`end_idle`.

    ``root_of`` a stream's number: the root that its rows come through. ``latest``: which row of each stream is the last. ``machine_clock``:
    what rows are dated by; None: by a clock that is right.
    """

    def __init__(
        self,
        data: Path,
        segment_rows: int = SEGMENT_ROWS,
        root_of: Callable[[int], int] = lambda _: 0,
        *,
        machine_clock: MachineClock | None = None,
    ) -> None:
        self.path = data / DIRECTORY
        self.path.mkdir(parents=True, exist_ok=True)
        self._segment_rows, self._root_of = segment_rows, root_of
        self._appending = threading.Lock()
        found = partitions(self.path)
        self._writers = {root_of_path(partition.path): Writer(partition, segment_rows) for partition in found}
        self.rows = length(self.path)
        self.latest = Latest(self.rows, time.time_ns() // 1000)
        last = self.tail(1)["arrival"].tolist() if machine_clock is not None else []
        self.dating = (
            Dating(data, last[0] if last else None, machine_clock) if machine_clock is not None else None
        )

    def go_on_at(self, row: int) -> None:
        """Number the next record at least so: others have had rows up to there, and take none for new whose number is below, but a disk
        has lost them, or somebody has taken the log away. OSError: nothing has changed."""
        if self.rows >= row:
            return
        _log.warning("log: rows %d to %d are gone: it goes on at row %d", self.rows, row - 1, row)
        if not self._writers:
            self._writers[0] = Writer(partition_of(self.path, 0), self._segment_rows, row)
        for writer in self._writers.values():
            writer.begin_segment(row)
        self.rows = row

    @property
    def first(self) -> int:
        """Number of the first row that is there."""
        return first(self.path)

    def append(self, records: Records) -> int:
        """Append and sync; returns the first row's number. When it returns, the rows are durable. OSError: nothing was appended.

        Rows of several roots are numbered root by root.
        """
        with self._appending:
            return self._append(records)

    def _append(self, records: Records) -> int:
        roots, numbers = self._roots(records), self.numbers(records)
        if self.dating is not None:
            self.dating.note(numbers, records)
        done: list[tuple[Writer, int]] = []
        try:
            for root in np.unique(roots).tolist():
                mine = roots == root
                writer = self._writer(root)
                writer.append(numbered(records[mine], numbers[mine]), self.rows)
                done.append((writer, int(mine.sum())))
        except OSError:
            for writer, count in done:
                writer.cut(writer.rows - count)
            raise
        number, self.rows = self.rows, self.rows + len(records)
        self.latest.note(numbers, records)
        return number

    def numbers(self, records: Records) -> Int64:
        """The number that each of these records will have if they are appended now."""
        places = np.argsort(self._roots(records), kind="stable")
        numbers = np.empty(len(records), np.int64)
        numbers[places] = np.arange(self.rows, self.rows + len(records))
        return numbers

    def _roots(self, records: Records) -> Int64:
        """Whose rows records are."""
        streams, place = np.unique(records["stream"], return_inverse=True)
        return np.array([self._root_of(int(stream)) for stream in streams], np.int64)[place]

    def _writer(self, root: int) -> Writer:
        if root not in self._writers:
            self._writers[root] = Writer(partition_of(self.path, root), self._segment_rows)
        return self._writers[root]

    def tail(self, count: int) -> Records:
        """The last ``count`` records at most."""
        return read(self.path, max(self.first, self.rows - count), self.rows)

    def end_idle(self, row: int, since: float) -> None:
        """Let segments that grow be full where nothing was appended since a time (UTC in s), and all rows are before this one: their roots
        may be gone for good. That with the log's last row stays: what comes again is told by it. OSError: some other time."""
        with self._appending:
            for writer in self._writers.values():
                if (
                    writer.rows
                    and writer.appended < since
                    and writer.partition.end() <= min(row, self.rows - 1)
                ):
                    # From there on it has all of its root's rows, whenever there are more.
                    writer.begin_segment(writer.partition.end())

    def drop_before(self, row: int) -> int:
        """Delete the full segments that hold only rows before this one; returns how many bytes that frees."""
        freed = 0
        for partition in partitions(self.path):
            # Oldest first: what a crash leaves has no hole.
            for end, file in partition.full():
                if end > row:
                    break
                freed += file.stat().st_size
                file.unlink()
                sync_directory(partition.path)
        return freed

    def close(self) -> None:
        """Close the files."""
        for writer in self._writers.values():
            writer.close()


def partition_of(path: Path, root: int) -> Partition:
    """A root's partition."""
    return Partition(path / f"{ROOT}{root}")


def root_of_path(path: Path) -> int:
    """Whose partition a directory is."""
    return int(path.name.removeprefix(ROOT))


def partitions(path: Path) -> list[Partition]:
    """All there are, by root; [] for a log that is not there yet."""
    if not path.is_dir():
        return []
    names = [
        name
        for name in path.iterdir()
        if name.name.startswith(ROOT) and name.name.removeprefix(ROOT).isdecimal()
    ]
    return list(map(Partition, sorted(names, key=root_of_path)))


def full_segments(path: Path) -> list[tuple[int, Path]]:
    """Segments of all partitions that do not grow, oldest first: the number behind their rows, and the file."""
    return sorted(segment for partition in partitions(path) for segment in partition.full())


def first(path: Path) -> int:
    """Number of the first row from which on all are there."""
    return max((min(partition.begins(), default=0) for partition in partitions(path)), default=0)


def length(path: Path) -> int:
    """Number of the next record of a log that another process may be appending to."""
    return max((partition.end() for partition in partitions(path)), default=0)


def size(path: Path) -> int:
    """Bytes of all segments."""
    return sum(p.segment(begin).stat().st_size for p in partitions(path) for begin in p.begins())


def read(path: Path, start: int, end: int) -> Records:
    """Records ``start`` .. ``end`` - 1, those that have been written. Raises RowsGoneError for rows that were dropped."""
    end = min(end, length(path))
    if end <= start:
        return np.empty(0, RECORD)
    there = first(path)
    if start < there:
        raise RowsGoneError(start, there)
    try:
        return in_order([partition.read(start, end) for partition in partitions(path)], start, end)
    except FileNotFoundError:
        raise RowsGoneError(start, first(path)) from None


def in_order(parts: list[Records], start: int, end: int) -> Records:
    """Rows ``start`` .. ``end`` - 1 of all partitions, without their numbers. One that a damaged disk has lost is of stream 0, which is
    nobody's."""
    found = np.zeros(end - start, RECORD)
    for part in parts:
        # A damaged one may bear the number of another partition's.
        rows = part if part["stream"].all() else part[(part["stream"] | part["checksum"]) > 0]
        if len(rows):
            put(rows, found, start)
    return found


def read_there(path: Path, start: int, end: int) -> tuple[int, Records]:
    """Those of the records ``start`` .. ``end`` - 1 that the log still has, and the number of the first."""
    start = max(start, first(path))
    try:
        return start, read(path, start, end)
    except RowsGoneError:
        return read_there(path, start, end)
