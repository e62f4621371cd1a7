"""Three hundred drawn joins of one gateway, which is killed twenty times while rows come: what answers lack or have twice, beside DuckDB's.

Joins are asked in batches, each of which has its share of the ends: kill -9 of the gateway, of Spark's driver, of its JVM with all
executors, or of the Python of these, as many of each, in a drawn order and before drawn rows. Rows come over TCP from eight sources in
four streams, one of which is silent. What DuckDB answers is made of the log's rows once they are all there.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from bench.measuring.gateways import gateway_and_root
from bench.runner.benchmark import Benchmark, OptionError, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from gateway.tests.joins import users_joins
from gateway.tests.joins.drawn import SITES
from gateway.tests.joins.drawn_queries import ENDS, LONGEST_S, Batch
from gateway.tests.sources.line_server import LineServer

#: What comes behind the last answer that was waited for is seen within so many seconds.
_SETTLES_S = 2.0


@dataclass(frozen=True)
class Killed(SeedOptions):
    joins: int = option(300, "drawn joins")
    batch: int = option(30, "joins that are asked together")
    kills: int = option(20, "how often something is killed")


@dataclass
class Found:
    """Of some joins: how many there are, how many are right; answers that DuckDB has, those that are missing, come twice, or are none."""

    joins: int = 0
    answers: int = 0
    equal: int = 0
    lacking: int = 0
    doubled: int = 0
    extra: int = 0

    def add(self, expected: Counter[tuple[object, ...]], got: Counter[tuple[object, ...]]) -> None:
        """One join more."""
        more = got - expected
        self.joins += 1
        self.answers += expected.total()
        self.equal += got == expected
        self.lacking += (expected - got).total()
        self.doubled += sum(count for row, count in more.items() if row in expected)
        self.extra += sum(count for row, count in more.items() if row not in expected)

    def all_with(self, other: Found) -> Found:
        """Both together."""
        return Found(*(one + two for one, two in zip(vars(self).values(), vars(other).values(), strict=True)))


@contextmanager
def _servers() -> Iterator[list[LineServer]]:
    made = [LineServer() for _ in SITES]
    try:
        yield made
    finally:
        for server in made:
            server.close()


def shares(ends: list[str], batches: int) -> list[list[str]]:
    """Those of each batch, as evenly as they go."""
    return [ends[number::batches] for number in range(batches)]


def compared(batch: Batch, connection: duckdb.DuckDBPyConnection, recorder: Recorder) -> Found:
    """Each join's answers with DuckDB's, once there are as many, or in vain."""
    expected, ends = batch.expected(connection), time.monotonic() + LONGEST_S
    wanted = sum(one.total() for one in expected)
    while time.monotonic() < ends:
        pairs = list(zip(expected, batch.readers, strict=True))
        if all(len(reader.got) >= one.total() for one, reader in pairs):
            break
        recorder.progress(f"{sum(len(reader.got) for reader in batch.readers)} of {wanted} answers")
        time.sleep(0.5)
    time.sleep(_SETTLES_S)
    found = Found()
    for asked, one, reader in zip(batch.asked, expected, batch.readers, strict=True):
        got = Counter(map(users_joins.given, reader.got))
        found.add(one, got)
        if got != one:
            recorder.problem(f"{asked.said}: {(one - got).total()} lacking, {(got - one).total()} too many")
    return found


def measure(options: Killed, recorder: Recorder) -> None:
    """One gateway, batch after batch."""
    batches = -(-options.joins // options.batch)
    if options.joins < 1 or options.batch < 1 or options.kills < 0:
        raise OptionError(
            f"--joins {options.joins} --batch {options.batch} --kills {options.kills}: there is at least one join, and one in a batch"
        )
    chance, connection = random.Random(options.seed), duckdb.connect()
    ends = [ENDS[number % len(ENDS)] for number in range(options.kills)]
    chance.shuffle(ends)
    table = recorder.table(
        "batches",
        [
            Column("batch"), Column("killed with -9"), Column("joins", form=","), Column("DuckDB's answers", form=","),
            Column("joins that equal them", form=","), Column("lacking", form=","), Column("doubled", form=","), Column("extra", form=","),
            Column("s", form=",.0f"),
        ],
    )  # fmt: skip
    total = Found()
    with _servers() as servers, gateway_and_root() as (daemon, _):
        daemon.start()
        client = daemon.client("ada")
        client.execute(users_joins.CREATE)
        client.execute(users_joins.insert([server.address for server in servers]))
        # Has all of them open, whichever sources a join selects.
        client.query("SELECT n FROM drawn", linger_s=None)
        for number, kills in enumerate(recorder.steps(shares(ends, batches), "batches")):
            began, first = time.monotonic(), options.seed + options.batch * number
            batch = Batch.ask(
                chance, daemon, range(first, min(first + options.batch, options.seed + options.joins))
            )
            batch.send(chance, servers, number, kills)
            found = compared(batch, connection, recorder)
            batch.stop()
            table.row(str(number + 1), ", ".join(kills), *vars(found).values(), time.monotonic() - began)
            total = total.all_with(found)
    table.row("all", f"{len(ends)} times", *vars(total).values(), recorder.seconds)
    recorder.figure("kills with -9 while rows come", len(ends), main=True)
    recorder.figure(
        "drawn joins whose answers are DuckDB's", total.equal / total.joins * 100, "%", ".1f", better="more", goal=100, main=True,
    )  # fmt: skip
    for name, count in (("lacking", total.lacking), ("doubled", total.doubled), ("extra", total.extra)):
        recorder.figure(f"answers {name}, of {total.answers:,}", count, better="less", goal=0, main=True)


BENCHMARK = Benchmark(measure, quick=Killed(joins=6, batch=3, kills=2), minutes=15)
