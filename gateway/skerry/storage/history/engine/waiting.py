"""Somebody who waits for an answer, and may go before it is there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class GivenUpError(Exception):
    """Nobody waits for the answer any more."""


class Waiting:
    """May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[Callable[[], object]] = []
        self._gone = False

    def go(self) -> None:
        """He waits no longer: what works for him is told, and nothing begins for him again."""
        with self._lock:
            self._gone = True
            calls, self._calls = self._calls, []
        for call in calls:
            call()

    @contextmanager
    def working(self, give_up: Callable[[], object]) -> Iterator[None]:
        """While something works for him: ``give_up`` is called, in another thread, when he goes. Raises GivenUpError where he has gone."""
        with self._lock:
            if self._gone:
                raise GivenUpError
            self._calls.append(give_up)
        try:
            yield
        finally:
            with self._lock:
                if give_up in self._calls:
                    self._calls.remove(give_up)
