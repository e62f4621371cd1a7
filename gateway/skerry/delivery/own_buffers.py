"""Rows of windows that one query has for itself: computed from the log when their reader comes."""

from __future__ import annotations

import threading
from collections.abc import Callable

from skerry.delivery.buffers import FeedBuffer, Recent
from skerry.execution.deliveries import Delivery
from skerry.tables.columns import TableError
from skerry.windows.kept_runs import KeptRun, kept_run
from skerry.windows.own_windows import STEP, OwnWindows, Run

#: Readers of one query who may be in different places without going the whole way again each time.
RUNS = 4
#: A reader who is so few rows of the log behind is served at once.
NEAR_ROWS = 1024


class OwnBuffer(FeedBuffer):
    """The buffer of a query with windows of its own. ``kept``: these on their way, as they were kept before a restart, for who has come to
    a row of the log; None: it has to go the whole way."""

    def __init__(
        self, own: OwnWindows, recent: Recent, floor: int, kept: Callable[[int], Run | None] = lambda _: None
    ) -> None:
        super().__init__(recent, floor)
        self.own, self._kept = own, kept
        #: Rows of the log that were looked at since the last :meth:`capture`.
        self.looked_at = 0
        self._captured: KeptRun | None = None
        self._runs: list[Run] = []
        self._reading = threading.Lock()

    def busy(self, position: int, through: int) -> bool:
        """Whether reading takes a while."""
        runs = [run for run in list(self._runs) if run.floor <= position]
        return self.trouble is not None or not runs or runs[0].at < through - NEAR_ROWS

    def deliveries(
        self, position: int, most: int = STEP, through: int = 0
    ) -> tuple[list[Delivery], int] | None:
        """See :meth:`FeedBuffer.deliveries`; never None. Raises TableError."""
        del most
        with self._reading:
            run = self._run(position)
            try:
                while run.at <= position and run.at < through:
                    self._step(run, through)
                found = run.behind(position)
                if not found and run.at < through:
                    self._step(run, through)
                    found = run.behind(position)
            except TableError as error:
                self.trouble = str(error)
                raise
            self.trouble = None
            return found, max(position, run.at - 1)

    def _run(self, position: int) -> Run:
        """The way that goes by a position; the one used last comes first."""
        run = next((run for run in self._runs if run.floor <= position), None)
        if run is None:
            run = self._kept(position)
            if run is None or run.floor > position:
                run = Run(self.own)
        self._runs = [run, *(other for other in self._runs if other is not run)][:RUNS]
        return run

    def _step(self, run: Run, through: int) -> None:
        begin = run.at
        run.step(through)
        self.looked_at += run.at - begin

    def capture(self) -> KeptRun | None:
        """The way that has come farthest; as it was the last time while somebody is on it, which may take long. None: nobody was since the
        start."""
        if self._reading.acquire(blocking=False):
            try:
                if self._runs and self.trouble is None:
                    self._captured = kept_run(max(self._runs, key=lambda run: run.at))
                    self.looked_at = 0
            finally:
                self._reading.release()
        return self._captured
