"""Windows over rows of motes that users share: fed with batches, made of rows again after a restart, and for readers who are behind."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from skerry.delivery import log_rows
from skerry.delivery.buffers import Batch, Readable, Recent
from skerry.delivery.log_rows import LogRows
from skerry.delivery.subscribers import Subscriber
from skerry.delivery.window_snapshots import WindowSnapshots
from skerry.execution.deliveries import Delivery, in_order
from skerry.execution.matched import MatchedBatch
from skerry.execution.matching import Part
from skerry.execution.partial_panes import PartialPanes
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.storage.log.record import Block
from skerry.tables.columns import TableError
from skerry.windows.shared_windows import Wanted, Windows
from skerry.windows.snapshot import Snapshot, resume
from skerry.windows.window_parts import WindowView

log = logging.getLogger(__name__)

Folded = Callable[[Wanted, MatchedBatch], list[PartialPanes] | None]


@dataclass(slots=True)
class _Replay:
    """One user's windows over some feeds again, as far as row ``at`` of the log."""

    windows: Windows
    feeds: dict[int, Feed]
    views: Mapping[Hashable, WindowView]
    at: int


class MoteWindows:
    """A part of the engine, whose lock is held but where :meth:`replay` is asked. ``rows``: of the log; ``subscribers``: all there are, by
    user; ``by_utc``: whether windows are of all networks; ``snapshots``: what is kept over a restart."""

    def __init__(
        self,
        rows: LogRows,
        subscribers: Mapping[str, Subscriber],
        snapshots: WindowSnapshots | None,
        *,
        by_utc: bool,
    ) -> None:
        self._rows, self._subscribers, self._snapshots = rows, subscribers, snapshots
        self.utc = rows.utc if by_utc else None
        self.windows = self._new()
        #: The latest rows of windows, which may have come further than those of others before the first batch.
        self.recent = Recent()
        #: Rows of the log that windows have had.
        self.done = 0
        #: Why windows that began before the start lack rows; None: they do not.
        self.lacking: str | None = None
        self._replays: dict[str, _Replay] = {}
        self._replaying = threading.Lock()

    def _new(self) -> Windows:
        return Windows(self._rows.session, self.utc, self._rows.speed)

    def _sharing(self) -> dict[str, Subscriber]:
        return {user: s for user, s in self._subscribers.items() if s.shares_windows}

    def plans(self) -> dict[str, QueryPlan]:
        """Of all who share windows."""
        return {user: s.plan for user, s in self._sharing().items()}

    def set_feeds(self, user: str, subscriber: Subscriber) -> None:
        """A user has other feeds."""
        with self._replaying:
            self._replays.pop(user, None)
        views = self.windows.set_feeds(
            user, subscriber.residual, subscriber.feeds, self.done, self.recent.floor + 1
        )
        subscriber.buffer.see(views, self.done)

    def remove(self, user: str) -> None:
        """The user is gone."""
        with self._replaying:
            self._replays.pop(user, None)
        self.windows.remove(user)

    def skip_to(self, row: int) -> None:
        """Rows before this one do not come any more."""
        self.done = row
        self.recent.clear()

    # ---- batches ----

    def take(self, batch: MatchedBatch, folded: Folded) -> set[str]:
        """A batch's rows, those before which have been through: returns whose windows it brought. ``folded``: what executors have done."""
        batch = batch.behind(self.done)
        if batch.first >= batch.end:
            return set()
        rows: list[Mapping[int, Part]] = []

        def of_log() -> Mapping[int, Part]:
            if not rows:
                rows.append(self._rows.parts(self._rows.read(batch.first, batch.end)))
            return rows[0]

        parts, users = self.windows.merge(batch.streams, lambda wanted: folded(wanted, batch), of_log)
        self._remember(batch.first, batch.end, {key: [part] for key, part in parts.items()}, users)
        return users

    def _remember(
        self, first: int, end: int, parts: Mapping[Hashable, Sequence[Readable]], users: Iterable[str]
    ) -> None:
        """What windows gave with rows ``first`` .. ``end`` - 1, and whose it is."""
        for user in users:
            self._subscribers[user].buffer.hit(end)
        self.recent.add(Batch(first, end, parts))
        self.done = end

    # ---- a gateway that starts ----

    def go_on(self, kept: Snapshot, rows: int) -> None:
        """Windows as they were kept before a restart, when the log has ``rows``."""
        try:
            known = resume(self.windows, kept, self.plans())
        except ValueError as error:
            # It was written so: not by this program.
            log.warning("what was kept of windows is not understood (%s): they are made of rows again", error)
            self.windows = self._new()
            return
        self.done = kept.row
        log.info("windows of %d users go on behind row %d of %d", len(known), kept.row, rows)

    def catch_up(self, end: int) -> None:
        """What windows hold after a restart, from the log as far as it reaches back."""
        sharing = self._sharing()
        attributes = frozenset[int]().union(*(s.plan.attributes for s in sharing.values()))
        begins = self.windows.begins({user: s.begin for user, s in sharing.items()})
        kept = self.done
        at = min(begins.values(), default=end)
        if kept:
            at = min(at, kept)
        while at < end:
            # What comes behind the rows that were kept is for readers, too.
            upto = min(at + log_rows.STEP, kept if at < kept else end, end)
            # Of a thousand who have come in the course of a day hardly one asks for windows of all of it.
            begun = {number for number, begin in begins.items() if begin < upto}
            found, users = self._again(at, upto, attributes, begun)
            if kept and at >= kept:
                self._remember(at, upto, found, users)
            at = upto
        self.done = max(end, self.done)

    def _again(
        self, first: int, end: int, attributes: Collection[int], begun: Collection[int]
    ) -> tuple[dict[Hashable, list[Readable]], set[str]]:
        found: dict[Hashable, list[Readable]] = {}
        users: set[str] = set()
        try:
            for parts in self._rows.pieces(first, end, attributes):
                given, whose = self.windows.process(parts, begun)
                users |= whose
                for key, part in given.items():
                    found.setdefault(key, []).append(part)
        except TableError as error:
            # Windows of many users are not to wait for a file that may never come back, nor their new rows.
            self.lacking = str(error)
        return found, users

    # ---- readers who are behind ----

    def replay(self, user: str, subscriber: Subscriber, block: Block) -> list[Delivery]:
        """What a user's windows gave with some rows: the rows since his query began tell, so that the way there is kept for the
        next call. From any thread, without the engine's lock."""
        with self._replaying:
            replay = self._replays.pop(user, None)
        feeds = subscriber.feeds
        if replay is None or replay.at > block.first or replay.feeds != feeds:
            replay = self._begun(user, subscriber, feeds, block.first)
        for earlier in self._rows.pieces(replay.at, block.first, subscriber.plan.attributes):
            replay.windows.process(earlier)
        parts, _ = replay.windows.process(self._rows.parts(block))
        replay.at = block.end
        with self._replaying:
            # Who has gone, or has other feeds, has forgotten the way, or will not take this one.
            if self._subscribers.get(user) is subscriber and subscriber.feeds == feeds:
                self._replays[user] = replay
        found = [part.delivery(replay.views[key]) for key, part in parts.items() if key in replay.views]
        return in_order([part for part in found if part is not None])

    def _begun(self, user: str, subscriber: Subscriber, feeds: dict[int, Feed], first: int) -> _Replay:
        """On the way to row ``first``: with what was kept of his windows before it, if anything, or with the first row."""
        windows, at = self._new(), subscriber.begin
        kept = self._snapshots.before(first) if self._snapshots is not None else None
        if kept is not None and kept.row > at:
            try:
                known = resume(windows, kept, {user: subscriber.plan})
            except ValueError as error:
                log.warning("what was kept of windows is not understood: %s", error)
                windows, known = self._new(), set()
            at = kept.row if known else at
        return _Replay(windows, feeds, windows.set_feeds(user, subscriber.residual, feeds, 0), at)
