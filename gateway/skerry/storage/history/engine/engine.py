"""The gateway's side of the past's engine: a process that is started when it is first asked, and again when it dies."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import weakref
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from skerry.expressions import extension_aggregates
from skerry.sql.errors import QueryError
from skerry.storage.history.damaged_files import DamagedError
from skerry.storage.history.engine.messages import (
    Answered,
    Begin,
    Cancel,
    ClusterAnswer,
    ClusterCancel,
    ClusterSelect,
    Failed,
    Forget,
    Limits,
    Question,
    Refused,
    Stop,
)
from skerry.storage.history.engine.waiting import GivenUpError, Waiting
from skerry.tables.columns import TableError

log = logging.getLogger(__name__)

#: Its directory for temporary files, below the data directory.
DIRECTORY = "engine"
#: An answer takes so long at most, in s.
SECONDS = 600.0
#: Of the machine's memory, and of what is free on the disk, the engine takes so much.
_OF_MEMORY, _OF_DISK = 0.25, 0.25
_LEAST_MEMORY = 512 * 2**20
#: What is asked of so many rows or more is for a cluster, where there is one: DuckDB answers others sooner than Spark begins.
CLUSTER_ROWS = 20_000_000
#: How often a question is asked whose engine dies meanwhile.
_ATTEMPTS = 2
#: So long, in s, the process may take to end.
_ENDING_S = 5.0


class EngineError(TableError):
    """The engine has no answer now; one line. The query waits, as one does whose table cannot be read."""


class MovedError(Exception):
    """Files or rows of the log are no longer where the question has them."""


@dataclass
class _Pending:
    done: threading.Event
    answer: Answered | Refused | Failed | None = None


class Cluster(Protocol):
    """A Spark cluster, as :class:`skerry.spark.supervisor.SparkDriver` has it."""

    def select(self, asked: ClusterSelect, waiting: Waiting) -> str | None:
        """Why the rows are not there; None: they are."""


class PastEngine:
    """``directory``: for temporary files; whatever it holds from an earlier run goes. ``cluster``: answers what is asked of many rows,
    all of whose workers see that directory, and the past's. May be asked from any thread."""

    def __init__(self, directory: Path, limits: Limits | None = None, cluster: Cluster | None = None) -> None:
        self._directory, self._limits, self._cluster = directory, limits, cluster
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._keys = itertools.count(1)
        self._child: _Child | None = None
        self._stopped = False

    def key(self) -> int:
        """What one answer's pieces go by."""
        return next(self._keys)

    @property
    def pid(self) -> int | None:
        """The process; None: there is none."""
        child = self._child
        return child.process.pid if child is not None and child.process.poll() is None else None

    @property
    def answering(self) -> int:
        """How many questions the process is answering."""
        child = self._child
        return child.answering if child is not None else 0

    def ask(self, question: Question, waiting: Waiting) -> tuple[pa.Table, int, bool]:
        """A question's rows, their numbers in the first column, what position is reached, and whether more may follow. Raises QueryError,
        also of a limit that is reached; DamagedError, EngineError; GivenUpError, when ``waiting`` goes or the answer is forgotten;
        MovedError: it is to be asked anew."""
        folders = tuple(map(str, extension_aggregates.folders()))
        why = ""
        for _ in range(_ATTEMPTS):
            child = self._running()
            number = next(self._numbers)
            with waiting.working(partial(child.say, Cancel(number))):
                answer = child.ask(replace(question, number=number, extensions=folders))
            match answer:
                case Answered(_, table, position, more):
                    return pa.ipc.open_stream(table).read_all(), position, more
                case Refused(_, message, hint):
                    raise QueryError(message, hint)
                case Failed(_, reason, damaged, moved, given_up):
                    if given_up:
                        raise GivenUpError
                    if moved:
                        raise MovedError(reason)
                    raise (
                        DamagedError(reason) if damaged else EngineError(f"the past cannot be read: {reason}")
                    )
            why = child.ended()
            log.warning("the past's engine ended: %s", why)
        raise EngineError(f"the past cannot be read: its engine ended twice while it answered: {why}")

    def forget(self, key: int) -> None:
        """Nobody wants the next piece of an answer, nor what is being found out."""
        child = self._child
        if child is not None:
            child.say(Forget(key))

    def stop(self) -> None:
        """End the process, whatever it is at."""
        with self._lock:
            self._stopped = True
            child, self._child = self._child, None
        if child is not None:
            child.end()

    def _running(self) -> _Child:
        with self._lock:
            if self._stopped:
                raise EngineError("the past cannot be read: the gateway stops")
            if self._child is None or not self._child.lives:
                shutil.rmtree(self._directory, ignore_errors=True)
                self._directory.mkdir(parents=True, exist_ok=True)
                mine = self._limits or limits(self._directory)
                if self._limits is None and self._cluster is not None:
                    mine = replace(mine, cluster_rows=CLUSTER_ROWS)
                self._child = _Child(Begin(str(self._directory), mine), self._cluster)
                # Of a gateway that forgets it, or a test that does.
                weakref.finalize(self, self._child.end)
            return self._child


class _Child:
    """One process."""

    def __init__(self, begin: Begin, cluster: Cluster | None) -> None:
        self._cluster = cluster
        #: What the cluster is asked, by number.
        self._selects: dict[int, Waiting] = {}
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "skerry.storage.history.engine.process", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # Ctrl-C is the gateway's, which ends it in order.
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())
        self._saying = threading.Lock()
        self._lock = threading.Lock()
        self._pending: dict[int, _Pending] = {}
        self.lives = True
        self.say(begin)
        threading.Thread(target=self._listen, name="the past's engine", daemon=True).start()

    def ask(self, question: Question) -> Answered | Refused | Failed | None:
        """Its answer; None: the process died."""
        pending = _Pending(threading.Event())
        with self._lock:
            if not self.lives:
                return None
            self._pending[question.number] = pending
        self.say(question)
        pending.done.wait()
        return pending.answer

    @property
    def answering(self) -> int:
        return len(self._pending)

    def say(self, word: object) -> None:
        with self._saying:
            try:
                self._connection.send(word)
            except OSError:
                return

    def ended(self) -> str:
        """Why it ended."""
        try:
            code = self.process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        return f"killed by signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def end(self) -> None:
        if self.process.poll() is None:
            self.say(Stop())
        self.ended()

    def _listen(self) -> None:
        while True:
            try:
                word = self._connection.recv()
            except (EOFError, OSError):
                break
            if isinstance(word, ClusterSelect):
                self._selects[word.number] = Waiting()
                threading.Thread(target=self._select, args=(word,), daemon=True).start()
                continue
            if isinstance(word, ClusterCancel):
                select = self._selects.get(word.number)
                if select is not None:
                    select.go()
                continue
            with self._lock:
                pending = self._pending.pop(word.number, None)
            if pending is not None:
                pending.answer = word
                pending.done.set()
        with self._lock:
            self.lives = False
            left, self._pending = list(self._pending.values()), {}
        for pending in left:
            pending.done.set()
        for select in list(self._selects.values()):
            select.go()
        self._connection.close()

    def _select(self, asked: ClusterSelect) -> None:
        assert self._cluster is not None
        trouble = self._cluster.select(asked, self._selects[asked.number])
        del self._selects[asked.number]
        self.say(ClusterAnswer(asked.number, trouble))


def limits(directory: Path) -> Limits:
    """What the engine may take of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    free = shutil.disk_usage(directory).free
    return Limits(
        threads=max(1, len(os.sched_getaffinity(0))),
        memory=max(_LEAST_MEMORY, int(memory * _OF_MEMORY)),
        disk=int(free * _OF_DISK),
        seconds=SECONDS,
    )
