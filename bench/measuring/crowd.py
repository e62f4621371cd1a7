"""Users on one stream of a log that Spark reads: range filters of 0.1 % each, and somebody who reads for all of them."""

from __future__ import annotations

import bisect
import dataclasses
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from bench.measuring.plans import plan_of, query_of
from skerry.delivery.engine import Engine
from skerry.execution.deliveries import Delivery
from skerry.execution.matched import MatchedBatch
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.spark.index_file import IndexFile
from skerry.spark.supervisor import SparkDriver
from skerry.storage.log import stream_log
from skerry.storage.log.record import RECORD, Block, Records
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Stream

#: Values of ``light`` are uniform below this; each user asks for a closed range of a thousandth of them.
SPAN = 64_000
WIDTH = SPAN // 1000
MOTES = 54
#: A user who has just come reads at most so many rows from the log.
NEAR_ROWS = 1 << 20
#: Rows a second of a trickle, in so many steps.
RATE, STEPS = 1_000, 50


def filtered(low: int) -> str:
    """A user's query."""
    return (
        f"SELECT nodeid, light FROM sensors WHERE light BETWEEN {low} AND {low + WIDTH - 1} SAMPLE PERIOD 1 s"
    )


def shared_stream() -> Stream:
    """The stream that everybody's query is about."""
    query = query_of("SELECT nodeid, light FROM sensors SAMPLE PERIOD 1 s")
    return Stream(1, 1, 1, dataclasses.replace(query, where=None))


class Crowd:
    """A log, the engine over it with Spark, and so many users, whose rows one thread reads as soon as they come.

    ``delivered`` counts rows that users have got as Arrow columns; ``waits`` holds for each the time in s since
    its :meth:`append`, while ``waiting``. Use as a context manager.
    """

    def __init__(self, users: int = 0, seed: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self._directory = tempfile.TemporaryDirectory()
        path = Path(self._directory.name)
        self.log = StreamLog(path)
        self._index = IndexFile(path)
        self.engine = Engine(
            {1: shared_stream()}.get, publish=self._index.append, version=self._index.version
        )
        self.spark = SparkDriver("local[2]", path, self.log.path, self._process)
        self._positions: dict[str, int] = {}
        self._awake: set[str] = set()
        self._some = threading.Condition()
        self._stopped = self._reading = False
        #: Whether rows are read as they come; without, what the gateway does before anybody reads is left.
        self.readers = True
        self._trouble: Exception | None = None
        self._processed = 0
        self._firsts: list[int] = []
        self._times: list[float] = []
        self.delivered = 0
        self.waits: list[float] = []
        #: Whether ``waits`` is wanted.
        self.waiting = False
        #: When a user got his first row.
        self.firsts: dict[str, float] = {}
        self.resize(users)
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Crowd:
        try:
            self._reader.start()
            self.append(1000)
            self.spark.start()
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self.spark.stop()
        self.close()

    def close(self) -> None:
        """Delete the log, of a crowd that was never entered."""
        self.log.close()
        self._index.close()
        self._directory.cleanup()

    def resize(self, users: int) -> None:
        """Users go or come until there are so many."""
        while len(self._positions) > users:
            self.remove(next(reversed(self._positions)))
        while len(self._positions) < users:
            low = int(self.rng.integers(0, SPAN - WIDTH))
            self.add(str(len(self._positions)), plan_of(filtered(low)))

    def add(self, user: str, plan: QueryPlan) -> None:
        """One more user, from the next batch on."""
        self.engine.subscribe(user, plan)
        self.engine.set_feeds(user, {1: Feed(user, 1, 1000, 1000, 0)})
        subscriber = self.engine.subscriber(user)
        assert subscriber is not None
        self._positions[user] = subscriber.buffer.floor
        subscriber.buffer.listen(lambda: self._wake(user))

    def remove(self, user: str) -> None:
        """The user goes."""
        self.engine.unsubscribe(user)
        del self._positions[user]
        self.firsts.pop(user, None)

    @property
    def users(self) -> int:
        """How many there are."""
        return len(self._positions)

    def _process(self, batch: MatchedBatch) -> int:
        count = self.engine.take(batch)
        self._processed = batch.end
        return count

    def trickle(self, seconds: float) -> None:
        """Rows at :data:`RATE` for so long."""
        began = time.monotonic()
        for step in range(int(seconds * STEPS)):
            self.append(RATE // STEPS)
            time.sleep(max(0.0, began + (step + 1) / STEPS - time.monotonic()))

    def append(self, count: int) -> None:
        """So many rows into the log."""
        self._firsts.append(self.log.rows)
        self._times.append(time.monotonic())
        self.log.append(rows(count, self.log.rows, self.rng))

    def wait(self) -> None:
        """Until every row has been through and every user has read his."""
        while self._processed < self.log.rows or self._reading or (self.readers and self._awake):
            if self._trouble is not None:
                raise self._trouble
            time.sleep(0.002)

    def _wake(self, user: str) -> None:
        self._awake.add(user)
        if not self._reading:
            with self._some:
                self._some.notify()

    def _read(self) -> None:
        while not self._stopped:
            with self._some:
                if not self._awake or not self.readers:
                    self._some.wait(0.05)
                    if not self.readers:
                        continue
            self._reading = True
            users, self._awake = self._awake, set()
            try:
                for user in users:
                    self._take(user)
            except Exception as error:
                self._trouble = error
                return
            self._reading = False

    def _take(self, user: str) -> None:
        subscriber = self.engine.subscriber(user)
        if subscriber is None:
            return
        position = self._positions.get(user, 0)
        found = subscriber.buffer.deliveries(position)
        if found is None:
            found = self._of_log(user, position)
        parts, position = found
        if user in self._positions:
            self._positions[user] = position
        now = time.monotonic()
        if parts:
            self.firsts.setdefault(user, now)
        for part in parts:
            self.delivered += len(part.numbers)
            if self.waiting:
                self.waits += [now - self.when(number) for number in part.numbers.tolist()]

    def _of_log(self, user: str, position: int) -> tuple[list[Delivery], int]:
        """Rows that came before executors knew the user."""
        done = self.engine.done
        if done - position > NEAR_ROWS:
            raise RuntimeError("the reader fell behind what is kept in memory")
        block = Block(position + 1, stream_log.read(self.log.path, position + 1, done))
        return self.engine.replay_arrow(user, block, position), max(position, done - 1)

    def when(self, row: int) -> float:
        """When the row was appended, in s of the monotonic clock."""
        return self._times[bisect.bisect_right(self._firsts, row) - 1]


def rows(count: int, first: int, rng: np.random.Generator) -> Records:
    """Rows of all motes, an epoch after the other."""
    made = np.zeros(count, RECORD)
    numbers = np.arange(first, first + count)
    made["stream"], made["node"], made["epoch"] = 1, numbers % MOTES, numbers // MOTES
    made["value"][:, 0] = rng.integers(0, SPAN, count)
    return made
