"""The joins that there are as a file beside the log: the gateway appends changes, executors read them as far as a batch's version.

Unlike the users' index it is what a restart goes on from: which bits of a row's state are whose is a function of a group's changes from
its beginning. A start leaves out groups that have gone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skerry.execution.join_sets import SINCE, Change, JoinSets
from skerry.joins.buckets import buckets_among
from skerry.spark.unreadable import UnreadableError
from skerry.storage.replacement import Replacement
from skerry.storage.state import DataError

DIRECTORY, NAME = "joins", "changes"
#: What is too large for Spark's state, beside it: whoever takes one away takes both.
_RUNS = "runs"
#: Groups that have gone and are told of once more.
_TOLD = 1000
_CHUNK = 1 << 16


class JoinFile:
    """For the gateway. ``sets``: all joins that there are. Raises OSError, DataError."""

    def __init__(self, data: Path) -> None:
        self.directory = data / DIRECTORY
        self.directory.mkdir(parents=True, exist_ok=True)
        self.path = self.directory / NAME
        self.sets = JoinSets()
        of_group: dict[str, list[Change]] = {}
        try:
            for change in read(self.path):
                before = self.sets.group_of.get(change[2])
                self.sets.apply(change)
                group = before or self.sets.group_of.get(change[2])
                if group is not None:
                    of_group.setdefault(group, []).append(change)
        except (LookupError, TypeError, ValueError) as error:
            raise damaged(self.path, error) from None
        kept = [one for group in self.sets.groups for one in of_group[group]]
        gone = [name for _, name in self.sets.gone][-_TOLD:]
        with Replacement(self.path) as file:
            file.write(
                _lines([[self.sets.version, SINCE, "", gone], *sorted(kept, key=lambda one: int(one[0]))])
            )
        self._file: int | None = None

    def append(self, changes: Sequence[Sequence[Any]]) -> int:
        """Changes without their versions: durable when this returns the version with which they are there. Raises OSError."""
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        numbered: list[Change] = []
        for version, (kind, *rest) in enumerate(changes, self.sets.version + 1):
            if kind == "join":
                beside = len(self.sets.groups) + len(numbered)
                rest[-1] = {**rest[-1], "buckets": buckets_among(beside)}
            numbered.append([version, kind, *rest])
        size = os.fstat(self._file).st_size
        data = memoryview(_lines(numbered))
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fdatasync(self._file)
        except OSError:
            os.ftruncate(self._file, size)
            raise
        for change in numbered:
            self.sets.apply(change)
        return self.sets.version

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _lines(changes: Sequence[Change]) -> bytes:
    return b"".join(json.dumps(change, separators=(",", ":")).encode() + b"\n" for change in changes)


def read(path: Path) -> list[Change]:
    """All whole changes; a torn last one is nobody's, as nobody was told of it. Raises DataError."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        raise damaged(path, error) from None


def damaged(path: Path, why: Exception) -> DataError:
    """What to do with a file that is not as it was written."""
    return DataError(
        f"{path} is not as the gateway wrote it ({type(why).__name__}: {why}): put it back from a copy, or take {path.parent} away: "
        "the joins that run are then made again of the rows that the log has"
    )


def runs(checkpoint: Path) -> Path:
    """Where files are that Spark's state names."""
    return checkpoint / _RUNS


def newest(path: Path) -> int:
    """The version of the last change; 0: there is none."""
    try:
        with path.open("rb") as file:
            end, size = file.seek(0, os.SEEK_END), _CHUNK
            while True:
                begin = max(0, end - size)
                file.seek(begin)
                lines = file.read(end - begin).split(b"\n")[:-1]
                if len(lines) > 1 or begin == 0:
                    return int(json.loads(lines[-1])[0]) if lines else 0
                size *= 8
    except FileNotFoundError:
        return 0


class JoinSetsReader:
    """For drivers and executors: what was read for a batch serves the next one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode, self._read_to, self._version = -1, 0, 0
        self._sets = JoinSets()
        #: The greatest version that the file has said.
        self._seen = 0

    def at(self, version: int) -> JoinSets:
        """As of a version. To be used before this is called again. Raises UnreadableError: the file is an older one, as another machine may
        see it."""
        try:
            self._read(version)
        except FileNotFoundError:
            self._seen = -1
        if self._seen < version:
            raise UnreadableError.of(f"change {version} of the joins is", self._path)
        return self._sets

    def _read(self, version: int) -> None:
        with self._path.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode != self._inode or self._version > version:
                self._inode, self._read_to, self._version, self._sets = inode, 0, 0, JoinSets()
                self._seen = 0
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                change = json.loads(line)
                self._seen = max(self._seen, change[0])
                if change[1] != SINCE:
                    if change[0] > version:
                        break
                    self._version = change[0]
                self._sets.apply(change)
                self._read_to += len(line)


_readers: dict[Path, JoinSetsReader] = {}


def sets_at(path: Path, version: int) -> JoinSets:
    """As of a version, from what this process has read already."""
    if path not in _readers:
        _readers[path] = JoinSetsReader(path)
    return _readers[path].at(version)
