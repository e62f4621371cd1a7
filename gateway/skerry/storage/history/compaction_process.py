"""Compaction in a process of its own: it takes time and memory by the row, and the gateway's process has users to serve.

The process writes files and nothing else; which of them count the gateway's manifest says. It ends with the gateway, at once, whatever it
is at; so that not even one that hangs writes into a later gateway's files it holds a lock, which is waited for.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

from skerry.storage.history.compaction import Done, Task
from skerry.storage.state import DataError

#: The file, below the history's directory, that whoever writes files has locked.
LOCK = "lock"
#: A process of an earlier gateway has so long, in s, to notice that it is alone.
_ENDING_S = 20.0
#: What else has the machine to do goes first.
_NICE = 10


class CompactionProcess:
    """Does tasks one at a time; it is started by the first, and again by the one after its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    @property
    def pid(self) -> int | None:
        """The process; None: there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def done(self, task: Task) -> Done:
        """What a task came to. Raises what it raises; OSError: the process ended meanwhile."""
        with self._lock:
            if self._connection is None:
                self._start()
            assert self._connection is not None
            try:
                self._connection.send(task)
                found = self._connection.recv()
            except (EOFError, OSError):
                raise OSError(f"the process that compacts {self._ended()}; it is tried again") from None
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, Done)
        return found

    def end(self) -> None:
        """There is nothing to do for a while."""
        with self._lock:
            if self._process is not None:
                self._ended()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "skerry.storage.history.compaction_process", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # Ctrl-C is the gateway's, which ends it in order.
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())

    def _ended(self) -> str:
        """How it ended, once it has."""
        assert self._process is not None
        assert self._connection is not None
        self._connection.close()
        code = self._process.wait()
        self._process = self._connection = None
        return (
            f"was killed by signal {signal.Signals(-code).name}"
            if code < 0
            else f"ended with exit code {code}"
        )


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """While no process writes files below ``path``. Raises DataError where one of an earlier gateway goes on doing so."""
    with (path / LOCK).open("a") as file:
        deadline = time.monotonic() + _ENDING_S
        while not _locked(file, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if time.monotonic() > deadline:
                raise DataError(
                    f"{path}: a process of an earlier gateway still writes files of the past: end it, then start the gateway again"
                )
            time.sleep(0.05)
        yield


def _locked(file: IO[str], how: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, how)
        return True
    return False


def _next_tasks(connection: Connection, tasks: queue.SimpleQueue[Task]) -> None:
    """Take tasks until the gateway hangs up, which ends the process, whatever it is at."""
    while True:
        try:
            tasks.put(connection.recv())
        except (EOFError, OSError):
            os._exit(0)


def _answer(task: Task) -> Done | Exception:
    try:
        return task.done()
    except Exception as error:
        try:
            pickle.dumps(error)
        except Exception:
            return RuntimeError(f"{type(error).__name__}: {error}")
        return error


def main() -> None:
    """The process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
    connection = Connection(int(sys.argv[1]))
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    threading.Thread(target=_next_tasks, args=(connection, tasks), daemon=True).start()
    lock: IO[str] | None = None
    while True:
        task = tasks.get()
        if lock is None:
            lock = (task.path / LOCK).open("a")
            fcntl.flock(lock, fcntl.LOCK_EX)
        with suppress(OSError):
            connection.send(_answer(task))


if __name__ == "__main__":
    main()
