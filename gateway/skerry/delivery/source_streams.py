"""Streams that are no motes': their rows again from the log, and the windows that users have over them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.delivery.buffers import Readable
from skerry.delivery.entries import Entries
from skerry.delivery.window_snapshots import WindowSnapshots
from skerry.execution.deliveries import Delivery, in_order
from skerry.execution.matched import MatchedBatch
from skerry.execution.source_matching import Asked, delivered
from skerry.execution.source_rows import SourceRows, read
from skerry.planner.model.source_plans import SourcePlan
from skerry.sensors.readings import Readings
from skerry.storage.log.record import Block
from skerry.storage.log.source_batches import SourceFiles
from skerry.storage.log.source_times import SourceTimes
from skerry.windows.kept_sources import KeptOfSources, SharedCapture
from skerry.windows.snapshot import Snapshot
from skerry.windows.source_latest import SourceLatest
from skerry.windows.source_windows import SourceWindows

#: Rows of the log read at a time, and at a time backwards.
STEP, _BACK = 65_536, 1024
#: Among so many batches of a table before a query FROM LATEST, at least, the newest rows are looked for.
NEWEST_BATCHES = 1000


class SourceUsers:
    """Whose rows are made of many: windows, and answers from the newest rows. ``files``: of the log; ``block``: its rows."""

    def __init__(self, files: SourceFiles, block: Callable[[int, int], Block]) -> None:
        self.files, self._block = files, block
        self.windows = SourceWindows(SourceTimes(files.path).before)
        self.latest = SourceLatest(files.readings)

    def add(self, user: str, plan: SourcePlan, first: int, at: int) -> Mapping[Hashable, Any]:
        """A user, of records from ``first`` on; ``at``: the next record that comes here."""
        if not plan.latest:
            return self.windows.add(user, plan, first, at)
        return self.latest.add(user, plan, first, at, lambda: self._before(plan.stream, at))

    def _before(self, stream: int | None, row: int) -> list[SourceRows]:
        """The last rows of a stream before a record, in order."""
        found: list[SourceRows] = []
        at, least, count = row, min(self.files.begins(), default=row), 0
        while at > least and count < NEWEST_BATCHES:
            begin = max(at - _BACK, least)
            for rows in rows_of(self.files, self._block(begin, at), stream).values():
                found.append(rows)
                count += len(np.unique(rows.numbers))
            at = begin
        return found[::-1]

    def end(self, user: str, number: int) -> None:
        """No rows of a user's sources come behind a record."""
        self.windows.end(user, number)
        self.latest.end(user, number)

    def remove(self, user: str) -> None:
        """The user is gone."""
        self.windows.remove(user)
        self.latest.remove(user)

    def __len__(self) -> int:
        """How many things there are that rows go into."""
        return len(self.windows) + len(self.latest)

    def capture(self, texts: Mapping[str, str]) -> list[SharedCapture]:
        """As they are, for a file. ``texts``: of users' queries."""
        return self.windows.capture(texts) + self.latest.capture(texts)

    def go_on(self, kept: KeptOfSources) -> set[str]:
        """As others were, before the first rows come: returns whose do so."""
        return self.windows.go_on(kept) | self.latest.go_on(kept)

    def wanted(self) -> dict[str, tuple[int, Asked]]:
        """By name of what is shared: the stream, and what executors are to make of its rows."""
        found: dict[str, tuple[int, Asked]] = {
            f"windows {key}": what for key, what in self.windows.wanted().items()
        }
        return found | {f"latest {key}": what for key, what in self.latest.wanted().items()}

    def begins(self) -> dict[int, int]:
        """By stream, the first record that matters."""
        found = self.windows.begins()
        for stream, begin in self.latest.begins().items():
            found[stream] = min(found.get(stream, begin), begin)
        return found

    def process(self, stream: int, rows: SourceRows, end: int) -> tuple[dict[Hashable, Readable], set[str]]:
        """The next rows of a stream: all of the records before ``end``."""
        brought = self.windows.process(stream, rows, end)
        parts, users = self.latest.process(stream, rows, end)
        return {**brought.parts, **parts}, brought.users | users

    def merge(
        self,
        end: int,
        made: Callable[[str], list[pa.RecordBatch] | None],
        rows: Callable[[int], SourceRows | None],
    ) -> tuple[dict[Hashable, Readable], set[str]]:
        """The same of all streams, of which executors have made what was wanted; None: they did not know yet."""
        brought = self.windows.merge(end, lambda key: made(f"windows {key}"), rows)
        parts, users = self.latest.merge(end, lambda key: made(f"latest {key}"), rows)
        return {**brought.parts, **parts}, brought.users | users


def rows_of(files: SourceFiles, block: Block, stream: int | None = None) -> dict[int, SourceRows]:
    """Rows of a part of the log, of all such streams or of one."""
    numbers, records = np.arange(block.first, block.end, dtype=np.int64), block.records
    if stream is not None:
        mine = records["stream"] == stream
        numbers, records = numbers[mine], records[mine]
    return read(files, numbers, records)


@dataclass(slots=True)
class _Replay:
    """One user's windows again, as far as row ``at`` of the log."""

    users: SourceUsers
    views: Mapping[Hashable, Any]
    at: int


class SourceStreams:
    """``path``: the log's directory; ``block``: rows of the log from .. to - 1, those that it still has; ``snapshots``: what is kept over
    a restart; ``readings``: of the tables that rows are joined with. A part of the engine."""

    def __init__(
        self,
        path: Path,
        block: Callable[[int, int], Block],
        entries: Entries,
        snapshots: WindowSnapshots | None = None,
        readings: Readings | None = None,
    ) -> None:
        self.files, self._snapshots = SourceFiles(path, readings), snapshots
        self._block, self._entries = block, entries
        self.users = SourceUsers(self.files, block)
        self._ends: dict[str, int] = {}
        self._there: set[str] = set()
        self._replays: dict[str, _Replay] = {}
        #: Of readers, who read the log again at the same time.
        self._lock = threading.Lock()

    def add(self, user: str, plan: SourcePlan, first: int, at: int) -> Mapping[Hashable, Any]:
        """A user whose rows are made of many, of records from ``first`` on; ``at``: the next record that comes here."""
        self._there.add(user)
        views = self.users.add(user, plan, first, at)
        self._entries.want_of_sources(self.users.wanted())
        return views

    def end(self, user: str, number: int) -> None:
        """No rows of a user's sources come behind a record."""
        self._ends[user] = number
        self.users.end(user, number)

    def remove(self, user: str) -> None:
        """The user is gone."""
        with self._lock:
            self._there.discard(user)
            self._replays.pop(user, None)
        self._ends.pop(user, None)
        self.users.remove(user)
        self._entries.want_of_sources(self.users.wanted())

    def go_on(self, kept: Snapshot, asked: Mapping[str, tuple[str, int]]) -> set[str]:
        """As they were kept before a restart, before the first batch: returns whose rows do so. ``asked``: by user, the text of the query,
        and the record that it begins with."""
        return self.users.go_on(KeptOfSources(kept.row, kept.sources, asked))

    def capture(self, texts: Mapping[str, str]) -> list[SharedCapture]:
        """As they are, for a file. ``texts``: of users' queries."""
        return self.users.capture(texts)

    def catch_up(self, end: int) -> None:
        """What windows hold after a restart, from the log as far as it reaches back."""
        for stream, begin in self.users.begins().items():
            for block in self._blocks(begin, end):
                for rows in rows_of(self.files, block, stream).values():
                    self.users.process(stream, rows, block.end)

    def _blocks(self, start: int, end: int) -> Iterator[Block]:
        for at in range(start, end, STEP):
            yield self._block(at, min(at + STEP, end))

    def take(self, batch: MatchedBatch) -> tuple[Mapping[Hashable, Readable], set[str]]:
        """What users have of a batch, and who they are."""
        read_again: list[dict[int, SourceRows]] = []

        def of_log(stream: int) -> SourceRows | None:
            if not read_again:
                read_again.append(rows_of(self.files, self._block(batch.first, batch.end)))
            found = read_again[0].get(stream)
            return found if found is not None and len(found.numbers) else None

        found = self.users.merge(batch.end, lambda key: self._entries.made_of_sources(key, batch), of_log)
        if self.exceeded:
            self._entries.want_of_sources(self.users.wanted())
        return found

    @property
    def exceeded(self) -> Mapping[str, str]:
        """By user, why there are no more windows."""
        return self.users.windows.exceeded

    def replay(self, user: str, text: str, plan: SourcePlan, block: Block, begin: int) -> list[Delivery]:
        """A user's rows of an older part of the log. ``text``: of his query; ``begin``: with which row it began."""
        assert plan.stream is not None
        if plan.gathers:
            return self._replay_made(user, text, plan, block, begin)
        found = [delivered(plan, rows) for rows in rows_of(self.files, block, plan.stream).values()]
        return [delivery for delivery in found if delivery is not None]

    def _replay_made(
        self, user: str, text: str, plan: SourcePlan, block: Block, begin: int
    ) -> list[Delivery]:
        """The rows since his query began tell, so that the way there is kept for the next call."""
        assert plan.stream is not None
        with self._lock:
            replay = self._replays.pop(user, None)
        if replay is None or replay.at > block.first:
            replay = self._replay_begun(user, text, plan, begin, block.first)
        for earlier in self._blocks(replay.at, block.first):
            for rows in rows_of(self.files, earlier, plan.stream).values():
                replay.users.process(plan.stream, rows, earlier.end)
        parts: dict[Hashable, Readable] = {}
        for rows in rows_of(self.files, block, plan.stream).values():
            parts |= replay.users.process(plan.stream, rows, block.end)[0]
        replay.at = block.end
        with self._lock:
            if user in self._there:
                self._replays[user] = replay
        found = [part.delivery(replay.views[key]) for key, part in parts.items() if key in replay.views]
        return in_order([part for part in found if part is not None])

    def _replay_begun(self, user: str, text: str, plan: SourcePlan, begin: int, first: int) -> _Replay:
        """On the way to row ``first``: with what was kept before it, if anything, or with the first row."""
        users = SourceUsers(self.files, self._block)
        views = users.add(user, plan, begin, begin)
        if user in self._ends:
            users.end(user, self._ends[user])
        kept = self._snapshots.before(first) if self._snapshots is not None else None
        if kept is not None and users.go_on(KeptOfSources(kept.row, kept.sources, {user: (text, begin)})):
            return _Replay(users, views, kept.row)
        return _Replay(users, views, begin)
