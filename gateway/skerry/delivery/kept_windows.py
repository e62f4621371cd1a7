"""What of windows is kept over a restart: all that users have, written from time to time, and taken up again at the start."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from skerry.delivery.mote_windows import MoteWindows
from skerry.delivery.own_buffers import OwnBuffer
from skerry.delivery.own_snapshots import OwnSnapshots
from skerry.delivery.source_streams import SourceStreams
from skerry.delivery.subscribers import Subscriber
from skerry.delivery.window_snapshots import WindowSnapshots
from skerry.windows.snapshot import Capture

log = logging.getLogger(__name__)


class KeptWindows:
    """A part of the engine, whose lock is held. ``subscribers``: all there are, by user; ``own``: who has windows for himself."""

    def __init__(
        self,
        subscribers: Mapping[str, Subscriber],
        windows: MoteWindows,
        sources: SourceStreams | None,
        own: Mapping[str, OwnBuffer],
        snapshots: WindowSnapshots | None,
    ) -> None:
        self._subscribers, self._windows, self._sources = subscribers, windows, sources
        self._own, self._snapshots = own, snapshots
        self.of_own = OwnSnapshots()

    def keep(self) -> None:
        """Windows for the next start, from time to time."""
        # Windows that lack rows may find them when they are made anew.
        if self._snapshots is None or self._windows.lacking is not None:
            return
        windows, row = self._windows.windows, self._windows.done
        shared = len(windows.shared())
        of_sources = len(self._sources.users) if self._sources is not None else 0
        looked_at = sum(buffer.looked_at for buffer in self._own.values())
        if (shared or self._own or of_sources) and self._snapshots.due(row, shared, of_sources, looked_at):
            own = self.of_own.capture(self._own)
            texts = {user: text for user, (text, _) in self._of_sources().items()}
            sources = self._sources.capture(texts) if self._sources is not None else ()
            self._snapshots.keep(Capture(row, windows, self._windows.plans(), own, sources))

    def resume(self, rows: int) -> None:
        """See :meth:`skerry.delivery.engine.Engine.resume`."""
        if self._snapshots is None:
            return
        if self._own:
            self.of_own.resume(self._snapshots.whole(rows), self._own)
        sharing, of_sources = self._windows.plans(), self._of_sources()
        if not sharing and not of_sources:
            return
        kept = self._snapshots.begin(rows)
        if kept is None:
            log.info("no file has what windows hold: they are made of the rows since their queries began")
            return
        if sharing:
            self._windows.go_on(kept, rows)
        if self._sources is not None:
            for user in self._sources.go_on(kept, of_sources):
                # Rows that came before that are in no batch, though it may come again.
                self._subscribers[user].buffer.floor = kept.row - 1

    def _of_sources(self) -> dict[str, tuple[str, int]]:
        """The text and the beginning of queries whose rows are made of many of sources that are no motes."""
        return {
            user: (s.plan.text, s.begin)
            for user, s in self._subscribers.items()
            if s.plan.sources is not None and s.plan.sources.gathers
        }
