"""A question that is being answered: it is given up when nobody waits for it any more, or it takes too long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

#: So often, in s, a question that is to end is interrupted until it does: between two statements there is nothing to interrupt.
_AGAIN_S = 0.02


class Running:
    """``key``: of :class:`skerry.storage.history.engine.messages.Question`. :meth:`give_up` may be called from any thread."""

    def __init__(self, key: int) -> None:
        self.key = key
        self._over, self._ending = threading.Event(), threading.Event()
        #: Whether it took too long, and whether nobody waits for it.
        self.late = self.given_up = False

    def give_up(self) -> None:
        """It ends soon, with an error of DuckDB's."""
        self.given_up = True
        self._ending.set()

    @property
    def ends(self) -> bool:
        """Whether it is to end."""
        return self.given_up or self.late

    @contextmanager
    def on(self, connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
        """While it is asked of a connection, which it may take so long. Once."""
        watch = threading.Thread(target=self._watch, args=(connection, seconds), daemon=True)
        watch.start()
        try:
            yield
        finally:
            self._over.set()
            self._ending.set()
            # Whoever is answered with this connection next is not interrupted.
            watch.join()

    def _watch(self, connection: duckdb.DuckDBPyConnection, seconds: float) -> None:
        if not self._ending.wait(seconds):
            self.late = True
        while not self._over.is_set():
            connection.interrupt()
            self._over.wait(_AGAIN_S)
