"""The gateway's own workers: started, watched, started again, and ended with it.

Each has a socket of its own at the one public address, which the system shares connections out over; the gateway keeps the sockets, so that
who comes while a worker starts again waits for it.
"""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import IO

from skerry.api.listening import bind
from skerry.serving.process import Settings

log = logging.getLogger(__name__)

#: From a worker's end to its next start, in s: the first time, and at most where one after the other ends at once.
_AGAIN_S = (0.5, 10.0)
#: One that has run for so long, in s, had started.
_RAN_S = 10.0
_ENDING_S = 5.0
_WORDS = 20


@dataclass
class _Started:
    name: str
    bound: socket.socket
    child: subprocess.Popen[bytes] | None = None
    state: str = "starting"


class ApiWorkerSupervisor:
    """``settings``: of every worker but for its name."""

    def __init__(self, listen: str, count: int, settings: Settings) -> None:
        """Raises ValueError, OSError."""
        # Several may share an address only if all say so; whether it is another's, one that says nothing finds out.
        bind(listen).close()
        self._settings = settings
        self._workers = [
            _Started(f"{settings.name}-{i + 1}", bind(listen, shared=True)) for i in range(count)
        ]
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(worker,), name=worker.name, daemon=True)
            for worker in self._workers
        ]

    def start(self) -> None:
        """Start them in the background."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End them."""
        self._stopping.set()
        for worker in self._workers:
            child = worker.child
            if child is not None and child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        for worker in self._workers:
            worker.bound.close()

    def states(self) -> dict[str, tuple[str, int | None]]:
        """How each is, by name, and its process id."""
        found = {}
        for worker in self._workers:
            child = worker.child
            found[worker.name] = (
                worker.state,
                child.pid if child is not None and child.poll() is None else None,
            )
        return found

    def _run(self, worker: _Started) -> None:
        pause = _AGAIN_S[0]
        while not self._stopping.is_set():
            began = time.monotonic()
            words = self._serve(worker)
            if self._stopping.is_set():
                break
            if time.monotonic() - began > _RAN_S:
                pause = _AGAIN_S[0]
            log.error("API worker %s ended: %s; it starts again in %g s", worker.name, words, pause)
            worker.state = f"restarting after {words}"
            self._stopping.wait(pause)
            pause = min(2 * pause, _AGAIN_S[1])
        worker.state = "stopped"

    def _serve(self, worker: _Started) -> str:
        """One process, from its start to its end; why it ended, in a line."""
        settings, descriptor = replace(self._settings, name=worker.name), worker.bound.fileno()
        child = worker.child = subprocess.Popen(
            [sys.executable, "-m", "skerry.serving", str(descriptor), settings.text()],
            pass_fds=[descriptor],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C is the gateway's, which ends its workers in order.
            start_new_session=True,
        )
        worker.state = "running"
        if self._stopping.is_set():
            child.terminate()
        words: deque[str] = deque(maxlen=_WORDS)
        assert child.stderr is not None
        listening = threading.Thread(target=_listen, args=(child.stderr, worker.name, words), daemon=True)
        listening.start()
        while True:
            try:
                code = child.wait(_ENDING_S)
                break
            except subprocess.TimeoutExpired:
                if self._stopping.is_set():
                    child.kill()
        listening.join(1)
        assert child.stdin is not None
        child.stdin.close()
        ended = f"killed by signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"{ended}: {words[-1]}" if words else ended


def _listen(said: IO[bytes], name: str, words: deque[str]) -> None:
    for line in said:
        text = line.decode(errors="replace").rstrip()
        if text:
            words.append(text)
            log.warning("%s: %s", name, text.removeprefix("skerry: "))
