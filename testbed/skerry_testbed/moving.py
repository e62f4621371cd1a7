"""Motes that have moved are told where they are, as by who carries them: a mote knows its place only from what it is told."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from skerry_testbed.runner import Testbed

#: A mote is told of a move of so many m, and again after so many s of virtual time: each command is passed on by all motes.
LEAST_M, EVERY_S = 0.5, 30.0
#: Tells a mote where it is, in m. Raises OSError where that could not be sent: it is tried again.
Tell = Callable[[int, float, float], object]


class Moves:
    """Looks at the motes of a run at the end of each slice of virtual time. ``waits``: until a mote has been told, as where telling is
    part of the run; else a thread does so."""

    def __init__(self, bed: Testbed, tell: Tell, *, waits: bool = False) -> None:
        self._bed, self._tell = bed, tell
        self._known = [(mote.x, mote.y) for mote in bed.motes]
        self._told = [-math.inf] * len(bed.motes)
        self._threads = None if waits else ThreadPoolExecutor(1, "moves")
        bed.slice_listeners.append(self._look)

    def close(self) -> None:
        """No more is told."""
        self._bed.slice_listeners.remove(self._look)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _look(self) -> None:
        now = self._bed.now_s
        for index, mote in enumerate(self._bed.motes):
            x, y = self._known[index]
            if math.hypot(mote.x - x, mote.y - y) < LEAST_M or now - self._told[index] < EVERY_S:
                continue
            self._told[index] = now
            if self._threads is None:
                self._send(index, mote.x, mote.y)
            else:
                self._threads.submit(self._send, index, mote.x, mote.y)

    def _send(self, index: int, x: float, y: float) -> None:
        try:
            self._tell(self._bed.motes[index].id, x, y)
        except OSError:
            return
        self._known[index] = x, y
