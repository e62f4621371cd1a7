"""State of an operator as bytes, without pickle: small runs of rows in one value, large ones in files of their own.

A run never changes, so its file is written once, under a name that the same batch after the same state gives again: a batch that is
repeated writes the same bytes. The state says which these are: a file that a disk has damaged, or that another machine sees as it was
before, is not taken for what was written. Files that a batch has merged or dropped stay for some batches, as that batch may be undone by a
crash.
"""

from __future__ import annotations

import os
import re
import socket
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec
import pyarrow as pa

from skerry.joins.group import Group
from skerry.joins.operator import Operator, Owned
from skerry.joins.outer import OuterOperator
from skerry.joins.pool import Pool, Run
from skerry.joins.row_windows import RowWindowOperator
from skerry.joins.rows import Rows, decode, encode

#: Runs of more bytes have files of their own.
INLINE_BYTES = 1 << 18
#: For so many batches a file stays that the state does not name any more.
KEPT_BATCHES = 12


_LOST = re.compile(r"([\w.-]+/[\w.-]+\.arrow) is not as it was written \(bytes: (\d+), checksum: (\d+)\)")


class LostRunError(Exception):
    """A file of rows that are kept is not there, or not as it was written, where a bucket is."""


def lost_run(directory: Path, error: str) -> bool:
    """Whether an error's text tells of a file that is not as it was written here either. ``directory``: has those of all groups."""
    return any(
        not _is_whole(directory / name, int(size), int(checksum))
        for name, size, checksum in _LOST.findall(error)
    )


def _is_whole(path: Path, size: int, checksum: int) -> bool:
    try:
        there = path.stat()
        return there.st_size == size and _checksum(path, there.st_ino, there.st_mtime_ns, size) == checksum
    except OSError:
        return False


@lru_cache(maxsize=4096)
def _checksum(path: Path, inode: int, changed_ns: int, size: int) -> int:
    """Once for each file, which stays as it is; the others say which one it is."""
    del inode, changed_ns, size
    return zlib.crc32(path.read_bytes())


class _RunState(msgspec.Struct, array_like=True):
    number: int
    pane: int
    rows: bytes
    file: str = ""
    size: int = 0
    checksum: int = 0


class _PoolState(msgspec.Struct, array_like=True):
    stream: str
    key: tuple[str, ...]
    pane_us: int
    next: int
    runs: list[_RunState]


class _State(msgspec.Struct):
    batch: int
    progress_us: int
    late: int = 0
    ahead: int = 0
    pools: list[_PoolState] = []
    #: What a join with windows of rows keeps.
    counted: bytes = b""
    #: Files to be removed, with the batch that has dropped them.
    dropped: list[tuple[int, str]] = []


@dataclass(frozen=True)
class RunFiles:
    """Where large runs have files; None: all is in the value. ``inline_bytes``: runs of more have files."""

    directory: Path | None = None
    inline_bytes: int = INLINE_BYTES


class BucketState:
    """An operator and its state: of ``value``, or of None at the beginning. Names of its files begin with ``prefix``."""

    def __init__(
        self, group: Group, value: bytes | None, files: RunFiles, prefix: str, owned: Owned | None = None,
        limit_bytes: int | None = None,
    ) -> None:  # fmt: skip
        self._where, self._prefix = files, prefix
        self._state = _State(0, 0) if value is None else msgspec.msgpack.decode(value, type=_State)
        self._files: dict[tuple[int, int], _RunState] = {}
        self.operator: Operator | RowWindowOperator
        if group.has_rows:
            self.operator = RowWindowOperator(group)
            if self._state.counted:
                self.operator.restore(self._state.counted)
        else:
            self.operator = (
                OuterOperator(group, limit_bytes) if group.is_outer else Operator(group, limit_bytes, owned)
            )
            self._restore(self.operator)

    @property
    def late(self) -> int:
        """Rows that were late so far."""
        return self._state.late

    @property
    def ahead(self) -> int:
        """Rows that were set aside so far."""
        return self._state.ahead

    def count(self, late: int, ahead: int) -> None:
        """So many more."""
        self._state.late += late
        self._state.ahead += ahead

    def _restore(self, operator: Operator) -> None:
        if self._state.batch:
            operator.progress_us = self._state.progress_us
        for place, kept in enumerate(self._state.pools):
            pool = operator.pools[kept.stream, kept.key] = Pool(operator.algorithm, kept.pane_us)
            for run in kept.runs:
                if run.file:
                    self._files[place, run.number] = run
                pool.restore(Run.of(run.number, run.pane, self._read(run)))
            pool.next_number = kept.next

    def _read(self, run: _RunState) -> Rows:
        if not run.file:
            return decode(run.rows)
        directory = self._where.directory
        assert directory is not None, f"{run.file}: state with files needs their directory"
        if not _is_whole(directory / run.file, run.size, run.checksum):
            raise LostRunError(
                f"{directory / run.file} is not as it was written (bytes: {run.size}, checksum: {run.checksum}) on {socket.gethostname()}"
            )
        return decode(pa.memory_map(str(directory / run.file)).read_buffer())

    def value(self) -> bytes:
        """The state after a batch. Raises OSError: a file could not be written."""
        state = self._state
        state.batch += 1
        state.progress_us = self.operator.progress_us
        if isinstance(self.operator, RowWindowOperator):
            state.counted = self.operator.save()
            return msgspec.msgpack.encode(state)
        before = {run.file for run in self._files.values()}
        state.pools = [
            _PoolState(
                stream, key, pool.pane_us, pool.next_number, [self._kept(place, run) for run in pool.runs]
            )
            for place, ((stream, key), pool) in enumerate(self.operator.pools.items())
        ]
        now = {run.file for pool in state.pools for run in pool.runs if run.file}
        state.dropped += [(state.batch, name) for name in sorted(before - now)]
        self._remove_old()
        return msgspec.msgpack.encode(state)

    def _kept(self, place: int, run: Run) -> _RunState:
        if (known := self._files.get((place, run.number))) is not None:
            return known
        rows = encode(run.rows)
        directory = self._where.directory
        if directory is None or len(rows) <= self._where.inline_bytes:
            return _RunState(run.number, run.pane, rows)
        name = f"{self._prefix}-{place}-{run.number}.arrow"
        part = directory / f".{name}.{os.getpid()}"
        part.write_bytes(rows)
        part.replace(directory / name)
        return _RunState(run.number, run.pane, b"", name, len(rows), zlib.crc32(rows))

    def _remove_old(self) -> None:
        state = self._state
        over = [name for batch, name in state.dropped if batch + KEPT_BATCHES <= state.batch]
        state.dropped = [(batch, name) for batch, name in state.dropped if batch + KEPT_BATCHES > state.batch]
        for name in over:
            assert self._where.directory is not None, f"{name}: state with files needs their directory"
            with suppress(FileNotFoundError):
                (self._where.directory / name).unlink()
