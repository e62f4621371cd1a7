"""The Spark driver's supervisor, in the gateway: starts the process, gives its batches on, watches it and starts it again.

The gateway's process loads no Spark. What the driver and its Java print is shown by ``-v``; of one that ends the last words are kept.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

import pyarrow as pa

from skerry.execution.blocks import batch_of, from_bytes
from skerry.execution.join_buckets import Joined
from skerry.execution.matched import MatchedBatch
from skerry.spark import checkpoint, environment, index_file, join_file
from skerry.spark.messages import (
    Batch,
    Begin,
    BeginJoins,
    DatabaseAnswer,
    DatabaseRequest,
    Failed,
    Job,
    JoinBatch,
    JoinsTaken,
    PastAnswer,
    PastCancel,
    PastRequest,
    Started,
    Stop,
    Taken,
)
from skerry.storage.block_files import BlockFiles
from skerry.storage.history.engine.messages import ClusterSelect
from skerry.storage.history.engine.waiting import GivenUpError, Waiting
from skerry.storage.log.source_batches import Through
from skerry.tables.jdbc import DatabaseError

log = logging.getLogger(__name__)

#: A driver that has not started by then, in s, is told as a trouble.
SLOW_S = 45.0
#: From the end of a driver to the next, in s: the first time, and at most where one after the other does not start.
_AGAIN_S = (1.0, 30.0)
#: So long a driver may take to end when it is told to, in s.
_ENDING_S = 20.0
#: Lines of its output that are kept.
_WORDS = 50


class SparkDriver:
    """Reads the log from where it left off and gives each batch to ``process``, which may be called again with one that it raised at."""

    def __init__(
        self, master: str, directory: Path, log_path: Path, process: Callable[[MatchedBatch], object]
    ) -> None:
        self._master, self._directory, self._log_path, self._process = master, directory, log_path, process
        self._local = directory.resolve() / "spark"
        self._files = BlockFiles(directory)
        self._stopping, self._begun = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="spark", daemon=True)
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._words: deque[str] = deque(maxlen=_WORDS)
        self._questions: dict[int, tuple[threading.Event, list[DatabaseAnswer | PastAnswer]]] = {}
        self._numbers = count(1)
        self._since, self._reason = time.monotonic(), ""
        #: So many times one after the other what window joins have kept between batches could not be read.
        self._lost = 0
        self.state = "starting"
        #: Makes answers of window joins durable, and says whether it could; what is known of them already, None: there are no joins.
        self.take_joined: Callable[[Joined], bool] = lambda _: False
        self.joined_through: Callable[[], dict[int, Through] | None] = lambda: None
        self.batches = 0
        self.batch_seconds: deque[float] = deque(maxlen=100)

    def prepare(self) -> None:
        """Start Spark in the background, which takes some seconds; it reads nothing before :meth:`start`. Raises OSError."""
        self._files.clear()
        self._thread.start()

    def start(self) -> None:
        """Batches come from now on. Raises OSError."""
        self._begun.set()
        if self._thread.ident is None:
            self.prepare()
        self._say(Begin())
        self.begin_joins()

    def begin_joins(self) -> None:
        """There are window joins, where there were none."""
        through = self.joined_through()
        if through is not None and self._begun.is_set():
            self._say(BeginJoins(through))

    @property
    def trouble(self) -> str | None:
        """Why Spark does not run, in a line, once that is more than a passing thing; None: it runs, or begins."""
        if self.state == "running" or not self._thread.is_alive():
            return None
        waited = time.monotonic() - self._since
        if self._reason:
            return f"Spark does not run, and is started again and again: {self._reason}"
        if waited > SLOW_S:
            # Without the time that passes, which would be another alarm each second.
            return f"Spark has not started within {SLOW_S:g} s: {self._last_words() or 'it says nothing'}"
        return None

    @property
    def pid(self) -> int | None:
        """The driver's process id; None: there is none."""
        child = self._child
        return child.pid if child is not None and child.poll() is None else None

    def stop(self) -> None:
        """Stop the driver and all that it has started."""
        self._stopping.set()
        self._say(Stop())
        if self._thread.ident is not None:
            self._thread.join(_ENDING_S)
            self._kill()
            self._thread.join()

    def read(self, jar: Path, options: dict[str, str], most: int) -> pa.Table | None:
        """A table over JDBC, with one row more than ``most`` where there are more; None: Spark is not there (yet). Raises DatabaseError.
        May be called from any thread, and takes as long as the database does."""
        number = next(self._numbers)
        answer = self._answer_to(number, DatabaseRequest(number, str(jar), most, options))
        if not isinstance(answer, DatabaseAnswer):
            return None
        if answer.table is None:
            raise DatabaseError(answer.trouble)
        return from_bytes(answer.table)

    def select(self, asked: ClusterSelect, waiting: Waiting) -> str | None:
        """Write the rows of a question about the past. Returns why they are not there, None: they are. May be called from any thread."""
        number = next(self._numbers)
        try:
            with waiting.working(lambda: self._say(PastCancel(number))):
                answer = self._answer_to(number, PastRequest(number, asked))
        except GivenUpError:
            return "nobody waits for it"
        return answer.trouble if isinstance(answer, PastAnswer) else f"Spark is not there: {self.state}"

    def _answer_to(self, number: int, request: object) -> DatabaseAnswer | PastAnswer | None:
        """The driver's answer to a request of this number; None: there is no driver, or it has ended."""
        if self.state != "running":
            return None
        event, answers = threading.Event(), list[DatabaseAnswer | PastAnswer]()
        self._questions[number] = event, answers
        try:
            if not self._say(request):
                return None
            event.wait()
        finally:
            del self._questions[number]
        return answers[0] if answers else None

    def _say(self, word: object) -> bool:
        """Whether there is a driver that could be told."""
        with self._lock:
            if self._connection is None:
                return False
            try:
                self._connection.send(word)
            except OSError:
                return False
            return True

    def _run(self) -> None:
        pause = _AGAIN_S[0]
        while not self._stopping.is_set():
            ran = False
            try:
                ran = self._serve()
            except Exception as error:
                self._reason = f"{type(error).__name__}: {error}"
                log.exception("the Spark driver's supervisor failed")
            if self._stopping.is_set():
                break
            self.state = f"restarting after {self._reason or 'its end'}"
            log.error("Spark ended: %s; it starts again in %g s", self._reason, pause)
            self._stopping.wait(pause)
            pause = _AGAIN_S[0] if ran else min(2 * pause, _AGAIN_S[1])
        self.state = "stopped"

    def _serve(self) -> bool:
        """One driver, from its start to its end. Returns whether it ran."""
        known = environment.trouble()
        if known is not None:
            self._reason = known
            return False
        local = self._begin_local()
        progress = checkpoint.usable(self._directory, self._log_path)
        joins = self._directory / join_file.DIRECTORY
        if self._lost > (0 if self._master.startswith("local") else 1):
            # Their state is made again of the log's rows. A worker on another machine may have seen files as they were before.
            wrong = f"{joins / checkpoint.DIRECTORY} cannot be read ({self._reason})"
            checkpoint.take_away(joins, self._log_path, wrong)
            self._lost = 0
        joins_progress = checkpoint.usable(joins, self._log_path)
        job = Job(
            self._master,
            str(self._directory.resolve()),
            str(local),
            str(self._log_path.resolve()),
            str((self._directory / index_file.DIRECTORY).resolve()),
            str(self._directory.resolve()),
            str(progress.resolve()),
            str(joins.resolve()),
            str(joins_progress.resolve()),
        )
        home = environment.make_spark_home(local)
        own = environment.environment(os.environ, self._master, self._directory.resolve(), home)
        ours, theirs = socket.socketpair()
        with theirs:
            child = self._child = subprocess.Popen(
                [sys.executable, "-m", "skerry.spark.driver", str(theirs.fileno())],
                env=own,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                # Ctrl-C is the gateway's, which ends its driver in order.
                start_new_session=True,
            )
        connection = Connection(ours.detach())
        self._words.clear()
        listening = threading.Thread(
            target=self._listen, args=(child.stdout,), name="spark's words", daemon=True
        )
        listening.start()
        self._since = time.monotonic()
        with self._lock:
            # Of one that has ended already the conversation tells.
            with suppress(OSError):
                connection.send(job)
            self._connection = connection
        try:
            failed, ran = self._converse(connection)
        finally:
            with self._lock:
                self._connection = None
            connection.close()
            for event, _ in list(self._questions.values()):
                event.set()
            self._end(child)
            listening.join(5)
            if local != self._local:
                shutil.rmtree(local, ignore_errors=True)
        if not self._stopping.is_set():
            self._reason = self._why(failed, child.returncode)
            for line in list(self._words)[-5:]:
                log.debug("Spark's last words: %s", line)
        return ran

    def _converse(self, connection: Connection) -> tuple[str, bool]:
        """Until the driver hangs up. Returns its last word, "" if it had none, and whether it ran."""
        failed, ran = "", False
        if self._begun.is_set():
            self._say(Begin())
            self.begin_joins()
        if self._stopping.is_set():
            self._say(Stop())
        while True:
            try:
                word = connection.recv()
            except (EOFError, OSError):
                return failed, ran
            match word:
                case Batch() as batch:
                    self._say(Taken(self._take(batch)))
                case JoinBatch(joined):
                    self._lost = 0
                    self._say(JoinsTaken(self._take_joined(joined)))
                case Started():
                    self.state, self._reason, ran = "running", "", True
                case Failed(reason, joins):
                    failed, self._lost = reason, self._lost + 1 if joins else 0
                case DatabaseAnswer() | PastAnswer() as answer:
                    self._answer(answer)

    def _begin_local(self) -> Path:
        """For Spark's own files. Spark takes what has a comma for two directories, Java what has a colon."""
        if set(",:") & set(str(self._local)):
            return Path(tempfile.mkdtemp(prefix="skerry-spark-"))
        return self._local

    def _take(self, word: Batch) -> bool:
        """Whether the gateway is done with a batch."""
        began = time.monotonic()
        try:
            blocks = self._files.batch(word.first, word.end) if word.blocks is None else word.blocks
            if blocks is None:
                log.info(
                    "%s has no rows %d to %d: they come again", self._files.path, word.first, word.end - 1
                )
                return False
            batch = batch_of(from_bytes(blocks))
            if batch is not None:
                self._process(batch)
        except Exception as error:
            if not self._stopping.is_set():
                log.exception("a batch could not be taken; it comes again")
                self.state = f"restarting after {type(error).__name__}"
            return False
        self.batches += 1
        self.batch_seconds.append(time.monotonic() - began)
        return True

    def _take_joined(self, joined: Joined) -> bool:
        try:
            return self.take_joined(joined)
        except Exception:
            log.exception("answers of joins could not be taken; they come again")
            return False

    def _answer(self, answer: DatabaseAnswer | PastAnswer) -> None:
        asked = self._questions.get(answer.number)
        if asked is not None:
            event, answers = asked
            answers.append(answer)
            event.set()

    def _listen(self, words: IO[bytes]) -> None:
        for line in words:
            text = line.decode(errors="replace").rstrip()
            if text:
                self._words.append(text)
                log.debug("Spark: %s", text)

    def _last_words(self) -> str:
        """The last two lines that say something: neither a place in Java's or Python's code nor what stands below one."""
        told = [
            line
            for line in self._words
            if not line.startswith(("\t", " ")) and not line.startswith("WARNING: ")
        ]
        return "; ".join(line[:200] for line in told[-2:])

    def _why(self, failed: str, code: int) -> str:
        """Why a driver ended, in a line."""
        words = self._last_words()
        if failed and "JAVA_GATEWAY_EXITED" not in failed:
            return failed
        ended = f"killed by signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        what = "Java did not start" if failed else f"its driver ended, {ended}"
        return f"{what}: {words}" if words else what

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Wait for a driver that has hung up; one that does not end is killed, with all of its session."""
        try:
            child.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            self._kill()
            child.wait()

    def _kill(self) -> None:
        child = self._child
        if child is not None and child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
