"""Batches of drawn joins of one gateway while it, or its Spark, is killed: what is asked, what is sent, what DuckDB answers."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import duckdb

from gateway.tests.joins import users_joins
from gateway.tests.joins.drawn import SECOND, TEXTS, Row, draw_any
from gateway.tests.joins.users_joins import Aggregated
from gateway.tests.process import Daemon, said, wait_for
from gateway.tests.sources.line_server import LineServer, Reader
from skerry.joins.join import Join
from skerry.planner.model import source_windows as windows

#: Rows of a batch until another stream is silent; and how far behind it are the rows that end it, in µs.
HALF, LAST = 60, 3600 * SECOND
#: What is killed while rows come: the gateway, Spark's driver, its JVM with all executors, or the Python of these.
ENDS = ("gateway", "driver", "java", "workers")
#: Until all of a batch have answered, on a machine that does much else.
LONGEST_S = 1200
WINDOWS_WAIT_US = 1000 * windows.WAIT_MS


@dataclass(frozen=True)
class DrawnQuery:
    """A drawn join, of which each fifth one is aggregated."""

    seed: int
    join: Join
    aggregated: Aggregated | None

    @classmethod
    def draw(cls, chance: random.Random, seed: int) -> DrawnQuery:
        """By its seed; how it is aggregated by chance."""
        join = draw_any(seed).join
        return cls(seed, *Aggregated.draw(chance, join)) if seed % 5 == 0 else cls(seed, join, None)

    @property
    def sql(self) -> str:
        """As it is asked."""
        return users_joins.sql(self.join, self.aggregated)

    @property
    def said(self) -> str:
        """Where it fails."""
        return f"seed {self.seed}: {self.sql}"

    def expected(
        self,
        streams: Mapping[str, list[Row]],
        own: Mapping[int, int],
        connection: duckdb.DuckDBPyConnection,
        *,
        ended: bool = False,
    ) -> Counter[tuple[object, ...]]:
        """What DuckDB answers; of windows those for which answers have come that are as much later as these wait."""
        found = users_joins.answers(self.join, streams, own, connection, ended=ended)
        if self.aggregated is None:
            return found
        latest = max((int(str(row[0])) for row in found), default=0)
        every = self.aggregated.expected(self.join, found, connection)
        wait_us = WINDOWS_WAIT_US + self.join.lateness_us + self.join.reach_us
        return Counter({row: n for row, n in every.items() if ended or int(str(row[0])) + wait_us <= latest})


@dataclass
class Sent:
    """Rows of eight sources in four streams, one of which is silent; ``since``: the log's length before them; ``kills``: what is killed
    before which row."""

    chance: random.Random
    servers: list[LineServer]
    daemon: Daemon
    since: int
    begin_us: int
    count: int = 0
    kills: Mapping[int, str] = field(default_factory=dict)

    def send(self, first: int, end: int) -> None:
        """Some more, until all are in the log."""
        silent = self.chance.randrange(4)
        for n in range(first, end):
            what = self.kills.get(n)
            if what == "gateway":
                self._kill_gateway()
            elif what is not None:
                wait_for(lambda what=what: self._kill_in_spark(what))
            late = self.chance.choice([0, 0, 0, 1, 3, 11]) * SECOND if self.chance.random() < 0.3 else 0
            of = self.chance.choice([place for place in range(len(self.servers)) if place // 2 != silent])
            self._send(of, n, self.begin_us + n * SECOND // 3 - late + n)
        self._wait()

    def _kill_gateway(self) -> None:
        # What a line's server has sent is nowhere else than in the log.
        self._wait()
        self.daemon.kill()
        wait_for(lambda: sum(server.listeners for server in self.servers) == 0)
        self.daemon.start()
        wait_for(lambda: all(server.listeners == 1 for server in self.servers))

    def _kill_in_spark(self, what: str) -> bool:
        """Whether it ran, and was killed; rows come meanwhile."""
        daemon = self.daemon
        if daemon.client().status()["spark"]["state"] != "running":
            return False
        started = daemon.started()
        drivers = [pid for pid in started if "skerry.spark.driver" in said(pid, "cmdline")]
        killed = drivers
        if what == "java":
            killed = [pid for pid in started if said(pid, "comm").strip() == "java"]
        elif what == "workers":
            killed = [pid for pid in started if "pyspark.daemon" in said(pid, "cmdline")]
        for pid in killed:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if what != "workers":
            # The state above is as it was until then.
            wait_for(lambda: not {*drivers} & {*daemon.started()})
        return bool(killed)

    def end(self) -> None:
        """So much later that all answers from before are there."""
        for n, of in enumerate(range(len(self.servers)), 2 * HALF):
            self._send(of, n, self.begin_us + LAST + n)
        self._wait()

    def _send(self, of: int, n: int, at_us: int) -> None:
        row = {
            "n": n, "item": self.chance.choice([None, 0, 1, 1, 2, -1]), "name": self.chance.choice(TEXTS),
            "level": self.chance.choice([None, 0.0, -0.0, 0.5, 1.5, 2.0]), "at": at_us,
        }  # fmt: skip
        self.servers[of].send(row)
        self.count += 1

    def _wait(self) -> None:
        wait_for(lambda: len(users_joins.logged(self.daemon.data, self.since)[1]) == self.count)


@dataclass
class Batch:
    """Drawn joins that are asked together, with who reads each; ``since``: the log's length before them."""

    daemon: Daemon
    since: int
    asked: list[DrawnQuery]
    readers: list[Reader]

    @classmethod
    def ask(cls, chance: random.Random, daemon: Daemon, seeds: Sequence[int]) -> Batch:
        """One for each seed."""
        since = daemon.client().status()["rows"]
        asked = [DrawnQuery.draw(chance, seed) for seed in seeds]
        client = daemon.client("ada")
        return cls(daemon, since, asked, [Reader(client.query(one.sql, linger_s=None)) for one in asked])

    def send(
        self, chance: random.Random, servers: list[LineServer], number: int, kills: Sequence[str]
    ) -> None:
        """All rows of the batch of this number, these ends between them."""
        wait_for(lambda: all(server.listeners == 1 for server in servers))
        sent = Sent(chance, servers, self.daemon, self.since, 10**15 + 2 * number * LAST)
        at = sorted(chance.sample(range(1, 2 * HALF), len(kills)))
        sent.kills = dict(zip(at, kills, strict=True))
        print(f"batch {number}: killed before rows {sent.kills}", flush=True)
        sent.send(0, HALF)
        sent.send(HALF, 2 * HALF)
        sent.end()

    def expected(self, connection: duckdb.DuckDBPyConnection) -> list[Counter[tuple[object, ...]]]:
        """What DuckDB answers to each of what the log has."""
        there = users_joins.logged(self.daemon.data, self.since)
        return [one.expected(*there, connection) for one in self.asked]

    def stop(self) -> None:
        """All of them."""
        for reader in self.readers:
            reader.rows.stop()
