"""The users' index as files beside the log: the gateway appends changes, executors read them as far as the version that a batch is
matched against.

A file ``<version>.changes`` holds what there was as of that version, then each change since: a line of JSON each, as
:mod:`skerry.execution.users_index` has them. When most of it is over, another one begins; the one before stays for batches under way.
Nothing is lost with these files: the gateway writes all anew when it starts, with versions that go on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

# Who only looks which version is the newest, as Spark's planning processes do, loads nothing of what works on rows.
if TYPE_CHECKING:
    from skerry.execution.joined import MakeJoin
    from skerry.execution.users_index import Change, UsersIndex

DIRECTORY = "index"
SUFFIX = ".changes"
#: Another file begins when it has this many changes more than twice what there is.
SPARE_CHANGES = 10_000
#: Files that stay.
_KEPT = 2
_TAIL_BYTES = 4096


class IndexFile:
    """For the gateway: ``version`` is the last that was ever written in a directory."""

    def __init__(self, data: Path) -> None:
        self.path = data / DIRECTORY
        self.path.mkdir(parents=True, exist_ok=True)
        self.version = newest(self.path)
        # Versions go on also if this ends before it has written anything: what was matched against an older one is told by that.
        self._replace(self.version, ())
        for old in _files(self.path)[:-1]:
            # Of users as they were; a power cut may have damaged it, too.
            old.unlink()
        self._file: int | None = None
        self._changes = 0

    def append(self, changes: list[Change], live: Collection[Change]) -> None:
        """The next changes; ``live``: all that there is with them. Raises OSError: they are not there, nor is anything that comes after
        them, until the next call, which writes all."""
        if not changes:
            return
        if self._file is None or self._changes > 2 * len(live) + SPARE_CHANGES:
            self._begin(changes[-1][0], live)
            return
        lines = memoryview(_lines(changes))
        try:
            while lines:
                lines = lines[os.write(self._file, lines) :]
        except OSError:
            self.close()
            raise
        self._changes += len(changes)

    def _begin(self, version: int, live: Collection[Change]) -> None:
        """Another file, which has all that there is."""
        self.close()
        name = self._replace(version, live)
        self._file, self._changes = os.open(name, os.O_WRONLY | os.O_APPEND), len(live)
        for old in _files(self.path)[:-_KEPT]:
            old.unlink()

    def _replace(self, version: int, live: Collection[Change]) -> Path:
        name = self.path / f"{version:020d}{SUFFIX}"
        part = name.with_suffix(".part")
        part.write_bytes(_lines(live))
        part.rename(name)
        return name

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _lines(changes: Iterable[Change]) -> bytes:
    return b"".join(json.dumps(change, separators=(",", ":")).encode() + b"\n" for change in changes)


def _files(path: Path) -> list[Path]:
    """Oldest first; [] where there are none."""
    return sorted(path.glob(f"*{SUFFIX}"))


def newest(path: Path) -> int:
    """The last version in a directory; 0: there is none."""
    files = _files(path)
    return 0 if not files else max(int(files[-1].stem), _last(files[-1]))


def _last(file: Path) -> int:
    """The version of a file's last whole line, another process may be appending to it; 0: it has none."""
    with file.open("rb") as opened:
        end, size = opened.seek(0, os.SEEK_END), _TAIL_BYTES
        while True:
            begin = max(0, end - size)
            opened.seek(begin)
            lines = opened.read(end - begin).split(b"\n")[:-1]
            # The first one may begin before.
            if len(lines) > 1 or begin == 0:
                break
            size *= 8
    if not lines:
        return 0
    try:
        return int(json.loads(lines[-1])[0])
    except (ValueError, LookupError, TypeError):
        return 0


def _users_index(make_join: MakeJoin | None = None) -> UsersIndex:
    from skerry.execution.users_index import UsersIndex  # noqa: PLC0415 (not for who only plans)

    return UsersIndex(make_join)


class IndexReader:
    """For an executor: what was loaded for a batch serves the next one, whose version is mostly the same or a little newer."""

    def __init__(self, path: Path, make_join: MakeJoin | None = None) -> None:
        """``make_join``: as of :class:`UsersIndex`."""
        self._path, self._make_join = path, make_join
        self._file: Path | None = None
        #: So many bytes of it.
        self._read_to = 0
        self._index = _users_index(make_join)

    def at(self, version: int) -> UsersIndex:
        """As of a version, or, where its files are gone, of the one that is left next to it: ``version`` of what is returned says which.
        To be used before this is called again."""
        try:
            return self._at_version(version)
        except FileNotFoundError:
            # Others have taken its place meanwhile.
            return self._at_version(version)

    def _at_version(self, version: int) -> UsersIndex:
        files = _files(self._path)
        fitting = [file for file in files if int(file.stem) <= version] or files[:1]
        if not fitting:
            return _users_index()
        file = fitting[-1]
        if file != self._file or self._index.version > version:
            self._file, self._read_to, self._index = file, 0, _users_index(self._make_join)
        self._read(file, max(version, int(file.stem)))
        return self._index

    def _read(self, file: Path, version: int) -> None:
        with file.open("rb") as opened:
            opened.seek(self._read_to)
            for line in opened:
                if not line.endswith(b"\n"):
                    break
                change = json.loads(line)
                if change[0] > version:
                    break
                self._index.apply(change)
                self._read_to += len(line)
        self._index.version = max(self._index.version, min(version, int(file.stem)))
