"""Files of what executors have matched: the driver publishes one for each batch of the log, and every process that serves readers takes
users' rows from them.

``<first>-<end>.blocks`` has the batches of rows ``first`` .. ``end`` - 1, one behind the other: each is a header (:data:`_HEADER`: its
first row, the one behind its last, and the bytes that follow), then its blocks. A name appears with its whole content, by rename; a batch
that comes again takes its file's place. Small files are put together as they gather.

No row depends on them: who finds a batch missing reads the log, so that nothing is synced, and any file may be deleted at any time.
"""

from __future__ import annotations

import logging
import os
import shutil
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

DIRECTORY = "matches"
SUFFIX = ".blocks"
_UNFINISHED = ".new"
_HEADER = struct.Struct("<qqq")
#: More files than this are put together, to files of so many bytes at most.
SMALL_FILES = 200
MERGED_BYTES = 32 << 20
#: Bytes of the disk that blocks leave free: rows, which are stored but once, go before.
SPARE_BYTES = 64 << 20
#: Files are looked after so often, in s.
_LOOK_S = 10.0


@dataclass(frozen=True, slots=True, order=True)
class BlockFile:
    """Rows ``first`` .. ``end`` - 1 of the log."""

    first: int
    end: int
    path: Path


class BlockFiles:
    """Those in a data directory. Any process may read, while one publishes and one looks after them."""

    def __init__(self, data: Path) -> None:
        self.path = data / DIRECTORY

    def clear(self) -> None:
        """Begin anew: whose rows are in older blocks, nobody knows after a restart. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        for file in self.path.iterdir():
            file.unlink(missing_ok=True)

    def publish(self, first: int, end: int, blocks: bytes) -> None:
        """A batch of rows ``first`` .. ``end`` - 1. OSError: it is not there, as also where the disk has little room left."""
        disk = os.statvfs(self.path)
        if disk.f_bavail * disk.f_frsize < SPARE_BYTES + len(blocks):
            raise OSError(f"{self.path}: its disk has less than {SPARE_BYTES >> 20} MB left")
        name = self._name(first, end)
        unfinished = name.with_suffix(_UNFINISHED)
        try:
            with unfinished.open("wb") as out:
                out.write(_HEADER.pack(first, end, len(blocks)))
                out.write(blocks)
            unfinished.replace(name)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise

    def batch(self, first: int, end: int) -> bytes | None:
        """The blocks of one batch; None: they are not there."""
        # Who looks for the newest mostly finds it before it is put together with others.
        for path in (self._name(first, end), *(file.path for file in self.files() if _has(file, first))):
            for begin, behind, blocks in _batches(path, first):
                if (begin, behind) == (first, end):
                    return blocks()
        return None

    def behind(self, row: int) -> Iterator[tuple[int, int, Callable[[], bytes | None]]]:
        """Batches that have the next row behind one, and those that follow, without a gap: first row, the one behind the last, and what
        reads the blocks."""
        while True:
            found = next((file for file in reversed(self.files()) if _has(file, row + 1)), None)
            if found is None:
                return
            before = row
            for first, end, blocks in _batches(found.path, row + 1):
                if first > row + 1:
                    return
                yield first, end, blocks
                row = end - 1
            if row == before:
                return

    def files(self) -> list[BlockFile]:
        """By their rows; [] where there is no directory."""
        try:
            names = [file for file in os.listdir(self.path) if file.endswith(SUFFIX)]
        except FileNotFoundError:
            return []
        found = []
        for name in names:
            first, _, end = name.removesuffix(SUFFIX).partition("-")
            if first.isdecimal() and end.isdecimal():
                found.append(BlockFile(int(first), int(end), self.path / name))
        return sorted(found)

    def drop(self, row: int, most: int) -> None:
        """Delete files that have only rows before one, and the oldest of those that are more than ``most`` bytes together."""
        left = 0
        for file in reversed(self.files()):
            left += _size(file.path)
            if file.end <= row or left > most:
                file.path.unlink(missing_ok=True)

    def merge(self) -> None:
        """Put small files together, if there are many. Raises OSError: they stay as they are."""
        files = self.files()
        if len(files) <= SMALL_FILES:
            return
        group, size = list[BlockFile](), 0
        for file in files:
            own = _size(file.path)
            if group and (file.first != group[-1].end or size + own > MERGED_BYTES):
                self._put_together(group)
                group, size = [], 0
            group.append(file)
            size += own
        self._put_together(group)

    def _put_together(self, files: list[BlockFile]) -> None:
        if len(files) < 2:
            return
        name = self._name(files[0].first, files[-1].end)
        unfinished = name.with_suffix(_UNFINISHED)
        try:
            with unfinished.open("wb") as out:
                for file in files:
                    with file.path.open("rb") as part:
                        shutil.copyfileobj(part, out, 1 << 20)
            unfinished.replace(name)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        for file in files:
            file.path.unlink(missing_ok=True)

    def _name(self, first: int, end: int) -> Path:
        return self.path / f"{first:020d}-{end:020d}{SUFFIX}"


def _has(file: BlockFile, row: int) -> bool:
    return file.first <= row < file.end


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _batches(path: Path, row: int) -> Iterator[tuple[int, int, Callable[[], bytes | None]]]:
    """A file's batches from the one with a row on; of one that is gone, or was cut off by a crash, those that are there."""
    try:
        # Read, not mapped: a file that another machine deletes on a shared disk would take the process with it.
        with path.open("rb") as file:
            while len(header := file.read(_HEADER.size)) == _HEADER.size:
                first, end, size = _HEADER.unpack(header)
                at = file.tell()
                if end > row:
                    yield first, end, lambda at=at, size=size: _read(path, at, size)  # type: ignore[misc]
                file.seek(at + size)
    except OSError as error:
        log.debug("%s: %s", path, error)


def _read(path: Path, at: int, size: int) -> bytes | None:
    try:
        with path.open("rb") as file:
            file.seek(at)
            blocks = file.read(size)
    except OSError:
        return None
    return blocks if len(blocks) == size else None


class BlockUpkeep:
    """Looks after the files in a thread of its own, as long as the log has their rows: ``first`` says from which row on. ``most``: bytes of
    them."""

    def __init__(self, files: BlockFiles, first: Callable[[], int], most: int) -> None:
        self._files, self._first, self._most = files, first, most
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="blocks", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            try:
                self._files.drop(self._first(), self._most)
                self._files.merge()
            except OSError as error:
                log.warning("blocks of matches: %s; they are looked after again", error)
