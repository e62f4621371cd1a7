"""Files that are replaced as a whole, and directories that have it durably."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import IO

_LIBC = ctypes.CDLL(None, use_errno=True)
#: What is being written; no reader's ``*.parquet`` finds it.
UNFINISHED = ".new"


def sync_directory(path: Path) -> None:
    """Make names that were added to or removed from a directory durable."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def sync_file_system(path: Path) -> None:
    """Make all that was written to the file system of a directory durable (syncfs(2), which Python lacks; it tells of failed writes
    since Linux 5.8). OSError: some of it is not."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _LIBC.syncfs(file):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(file)


class Replacement:
    """A file that takes another's place once it is complete and durable: readers see the old or the new one, whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unfinished = path.with_name(path.name + UNFINISHED)
        self._file: IO[bytes] | None = None

    def __enter__(self) -> IO[bytes]:
        self._file = self._unfinished.open("wb")
        return self._file

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._file is not None
        try:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
        finally:
            self._file.close()
            if kind is not None:
                self._unfinished.unlink(missing_ok=True)
        if kind is None:
            self._unfinished.replace(self._path)
            sync_directory(self._path.parent)
