"""Windows that queries have for themselves over a restart: what was kept of them, and what is to be kept.

They go on when their readers come, each from where it was: so what was kept stays, packed, until its query has gone farther.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from skerry.delivery.own_buffers import OwnBuffer
from skerry.windows.kept_runs import KeptRun
from skerry.windows.own_windows import OwnWindows, Run
from skerry.windows.snapshot import KeptOwn, Snapshot, run_of

log = logging.getLogger(__name__)


class OwnSnapshots:
    """Of all queries that have some. Asked from any thread."""

    def __init__(self) -> None:
        #: By query, of which the files of a restart have some, farthest first.
        self._before: dict[str, list[KeptOwn]] = {}

    def resume(self, found: Iterable[Snapshot], users: Iterable[str]) -> None:
        """What files have of these, newest first."""
        wanted = set(users)
        for snapshot in found:
            for user in wanted & snapshot.own.keys():
                self._before.setdefault(user, []).append(snapshot.own[user])

    def run(self, user: str, own: OwnWindows, position: int) -> Run | None:
        """On the way, for a reader who has come to a row of the log; None: nothing was kept that is not behind it."""
        for kept in self._before.get(user, ()):
            if kept.at - 1 <= position:
                try:
                    return run_of(kept, own)
                except ValueError as error:
                    log.warning("what was kept of the windows of query %s is not understood: %s", user, error)
        return None

    def forget(self, user: str) -> None:
        """His query has ended."""
        self._before.pop(user, None)

    def capture(self, buffers: Mapping[str, OwnBuffer]) -> dict[str, KeptOwn | tuple[str, KeptRun]]:
        """For the next file."""
        found: dict[str, KeptOwn | tuple[str, KeptRun]] = {}
        for user, buffer in buffers.items():
            run = buffer.capture()
            if run is not None:
                found[user] = buffer.own.plan.text, run
                self._before.pop(user, None)
            elif user in self._before:
                found[user] = self._before[user][0]
        return found
