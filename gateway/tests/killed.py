"""Users who come and go on a real gateway, while it and what it has started is killed with -9 at drawn points: each feed is what DuckDB
answers to its user's query over the rows that his time has brought."""

from __future__ import annotations

import os
import random
import signal
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

import skerry
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, wait_for
from skerry_protocol import codec
from skerry_protocol.codes import PacketType

MOTES = range(1, 8)
#: The first epoch: later than the root's clock, by which users' queries begin, will come to.
BEGIN = 10_000
#: Rows that come between two events, at least and at most.
ROWS = 30, 90


@dataclass
class User:
    """One with a reader that comes back by itself; ``since``: so many rows were sent before."""

    where: str
    period_s: int
    rows: skerry.Rows
    since: int
    got: list[tuple[object, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for row in self.rows:
            self.got.append((row["nodeid"], row["epoch"], row["temp"]))

    def leave(self, sent: Sequence[tuple[int, int, int]]) -> None:
        """Read what is his of the rows that were sent, and nothing else, and go."""
        expected = self.expected(sent[self.since :])
        wait_for(lambda: len(self.got) >= len(expected) or not self._thread.is_alive())
        self.rows.stop()
        self._thread.join(60)
        assert sorted(self.got) == expected, (self.where, self.period_s, self.since, len(sent))  # type: ignore[type-var]

    def expected(self, sent: Sequence[tuple[int, int, int]]) -> list[tuple[object, ...]]:
        """What DuckDB answers."""
        if not sent:
            return []
        values = ", ".join(
            f"({node}, {epoch}, CAST({temp} AS DECIMAL(9, 2)) / 100)" for node, epoch, temp in sent
        )
        return duckdb.execute(
            f"WITH sensors(nodeid, second, temp) AS (VALUES {values}) "
            f"SELECT nodeid, second // {self.period_s} AS epoch, CAST(temp AS DOUBLE) AS temp FROM sensors "
            f"WHERE second % {self.period_s} = 0 AND ({self.where}) ORDER BY ALL"
        ).fetchall()


class Site:
    """A gateway and its root, which numbers rows on whatever is killed."""

    def __init__(self, peer: RootPeer, daemon: Daemon, seed: int, *options: str) -> None:
        self.peer, self.daemon, self._options = peer, daemon, options
        self._chance = random.Random(seed)
        daemon.start(*options)
        self.sent: list[tuple[int, int, int]] = []
        self.present = [self._user("TRUE", 1)]
        wait_for(peer.programs)
        [self._query] = peer.programs()

    def _user(self, where: str, period_s: int) -> User:
        sql = f"SELECT nodeid, epoch, temp FROM sensors WHERE {where} SAMPLE PERIOD {period_s} s"
        sql = sql.replace("WHERE TRUE ", "")
        return User(where, period_s, self.daemon.client("ada").query(sql, linger_s=None), len(self.sent))

    def come(self) -> None:
        """A user comes, once all rows are in the log."""
        wait_for(lambda: self.daemon.client().status()["rows"] == len(self.sent))
        low, node = self._chance.randrange(18, 26), self._chance.choice(MOTES)
        where = self._chance.choice(
            [
                f"temp BETWEEN {low} AND {low + 1.5}",
                f"nodeid = {node}",
                f"temp > {low} AND nodeid <> {node}",
                f"temp < {low}.25 OR nodeid > {node}",
                f"nodeid % 3 = {node % 3} AND temp * 2 > {2 * low}",
            ]
        )
        self.present.append(self._user(where, self._chance.choice([1, 1, 2, 3])))

    def go(self) -> None:
        """One of those who are there leaves, but for the first one."""
        if len(self.present) > 1:
            wait_for(lambda: self.daemon.client().status()["rows"] == len(self.sent))
            self.present.pop(self._chance.randrange(1, len(self.present))).leave(self.sent)

    def send(self) -> None:
        """Rows of all motes; returns when the root has been told of some of them."""
        count = self._chance.randint(*ROWS)
        for number in range(len(self.sent), len(self.sent) + count):
            node, epoch = MOTES[number % len(MOTES)], BEGIN + number // len(MOTES)
            temp = self._chance.randrange(1800, 2700)
            self.sent.append((node, epoch, temp))
            self.peer.waiting.append(
                codec.encode(
                    PacketType.RESULT, query=self._query, node=node, epoch=epoch, nulls=0, values=struct.pack("<h", temp)
                )
            )  # fmt: skip
        left = self._chance.randrange(count)
        wait_for(lambda: len(self.peer.waiting) <= left)

    def kill_gateway(self) -> None:
        """… which starts again."""
        self.daemon.kill()
        self.daemon.start(*self._options)

    def kill_driver(self) -> None:
        """… which the gateway starts again."""
        wait_for(self._drivers)
        os.kill(self.daemon.driver, signal.SIGKILL)

    def _drivers(self) -> bool:
        return bool([pid for pid in self.daemon.started() if b"skerry.spark.driver" in _command(pid)])

    def kill_python_worker(self, processes: Callable[[], Sequence[int]]) -> None:
        """One of the Python workers of executors among these processes, as soon as there is one."""

        def found() -> list[int]:
            daemons = {pid for pid in processes() if b"pyspark.daemon" in _command(pid)}
            return sorted(pid for pid in daemons if _parent(pid) in daemons)

        wait_for(found)
        pids = found()
        if pids:
            os.kill(self._chance.choice(pids), signal.SIGKILL)

    def play(self, events: Sequence[Callable[[], object]]) -> None:
        """So many things happen, in a drawn order, some of them while rows are on their way."""
        drawn = list(events)
        self._chance.shuffle(drawn)
        for event in [self.come, *drawn]:
            self.send()
            event()
        self.send()
        wait_for(lambda: self.daemon.client().status()["rows"] == len(self.sent))
        # The first one, for whom motes are asked, is the last to go.
        assert set(self.peer.programs()) == {self._query}
        for user in reversed(self.present):
            user.leave(self.sent)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0
