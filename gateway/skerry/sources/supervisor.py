"""The intake process's supervisor, in the gateway: starts it once a source is wanted, gives on what it brings, and starts it again."""

from __future__ import annotations

import itertools
import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection

from skerry.sources.messages import Job, Key, Rows, SourceState, States, Taken, Wanted
from skerry.sources.statistics import SourceStatistics
from skerry.storage.log.source_batches import SourceBatch
from skerry.storage.log.source_positions import Position

log = logging.getLogger(__name__)

#: From the end of a process to the next, in s: the first time, and at most; one that has run for so long is no failure of the start.
_AGAIN_S, _RAN_S = (1.0, 30.0), 60.0
_ENDING_S = 5.0


class IntakeProcess:
    """``store`` makes batches durable and says whether it could; it is called by one thread. ``job``: what the process is told first;
    ``position``: up to where rows of a source are durable."""

    def __init__(
        self,
        job: Job,
        store: Callable[[Sequence[SourceBatch]], bool],
        position: Callable[[Key], Position | None],
        statistics: SourceStatistics,
    ) -> None:
        self._job, self._store, self._position, self._statistics = job, store, position, statistics
        self._lock, self._stopping, self._needed = threading.Lock(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="sources", daemon=True)
        self._connection: Connection | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._wanted = Wanted({}, {})
        self._opening, self._openings = itertools.count(1), dict[Key, int]()
        #: How sources are that are wanted.
        self.states: dict[Key, SourceState] = {}
        #: Why the process does not run; None: it runs, or nobody needs it.
        self.trouble: str | None = None

    @property
    def pid(self) -> int | None:
        """The process's id; None: there is none."""
        child = self._child
        return child.pid if child is not None and child.poll() is None else None

    def start(self) -> None:
        """From now on what is wanted is read."""
        self._thread.start()

    def want(self, wanted: Wanted) -> None:
        """Read these, and no others."""
        with self._lock:
            if wanted == self._wanted:
                return
            before, self._wanted = self._wanted, wanted
            self._openings = {key: self._openings.get(key) or next(self._opening) for key in wanted.rows}
            same = {key for key, row in wanted.rows.items() if before.rows.get(key) == row}
            self.states = {key: state for key, state in self.states.items() if key in same}
            if wanted.rows:
                self._needed.set()
            else:
                self.trouble = None
            self._send_wanted()

    def stop(self) -> None:
        """End the process."""
        self._stopping.set()
        self._needed.set()
        child = self._child
        if child is not None:
            child.send_signal(signal.SIGKILL)
        if self._thread.ident is not None:
            self._thread.join(_ENDING_S)

    def _send_wanted(self) -> None:
        found = {key: self._position(key) for key in self._wanted.rows}
        known = {key: position for key, position in found.items() if position is not None}
        self._send(replace(self._wanted, positions=known, openings=self._openings))

    def _send(self, word: object) -> None:
        if self._connection is not None:
            try:
                self._connection.send(word)
            except OSError as error:
                log.debug("the intake process has gone: %s", error)

    def _run(self) -> None:
        pause = _AGAIN_S[0]
        while True:
            self._needed.wait()
            if self._stopping.is_set():
                return
            began = time.monotonic()
            try:
                self._serve()
            except Exception:
                log.exception("the intake process's supervisor failed")
            if self._stopping.is_set():
                return
            code = self._child.returncode if self._child is not None else None
            pause = _AGAIN_S[0] if time.monotonic() - began > _RAN_S else pause
            self.trouble = (
                f"the process that reads sources ended, exit code {code}; it starts again in {pause:g} s"
            )
            self._stopping.wait(pause)
            pause = min(2 * pause, _AGAIN_S[1])

    def _serve(self) -> None:
        """One process, from its start to its end."""
        ours, theirs = socket.socketpair()
        with theirs:
            child = self._child = subprocess.Popen(
                [sys.executable, "-m", "skerry.sources.intake", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # Ctrl-C is the gateway's.
                start_new_session=True,
            )
        connection = Connection(ours.detach())
        with self._lock:
            self._connection = connection
            self._send(self._job)
            self._send_wanted()
        try:
            while True:
                word = connection.recv()
                if isinstance(word, Rows):
                    done = self._store(word.batches)
                    if done:
                        self._statistics.note(word.brought, time.time())
                    with self._lock:
                        self._send(Taken(done))
                elif isinstance(word, States):
                    self.trouble = None
                    self._statistics.told(word.states)
                    with self._lock:
                        known = {key: state for key, state in word.states.items() if key in self._wanted.rows}
                        self.states.update(known)
        except (EOFError, OSError):
            return
        finally:
            with self._lock:
                self._connection = None
                self.states.clear()
            connection.close()
            child.kill()
            child.wait()
