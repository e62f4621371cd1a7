"""How much of a batch's time executors have something to do, and whether they have the same: a standalone cluster, batches that are full.

From Spark's event log: a batch lasts as its progress says, and a task from its start to its end as the driver sees them.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

import numpy as np

from bench.measuring.line_and_log import MOTES, SPAN
from bench.measuring.spark_progress import row_of
from bench.measuring.states import SINCE, Driven, State, driven
from bench.runner.benchmark import Benchmark, Options, option
from bench.runner.provenance import PROJECT
from bench.runner.recorder import Recorder
from bench.runner.result import Column
from gateway.tests.cluster import Cluster
from gateway.tests.process import wait_for
from skerry.spark.log_source import BATCH

#: Of a batch's rows at least so many, that it counts as full.
FULL = 0.9


@dataclass(frozen=True)
class Load(Options):
    workers: tuple[int, ...] = option((1, 2), "workers of the cluster, in turn, of one core each")
    users: int = option(100, "users, of whom each wants a thousandth of the rows, and none has a reader")
    windows: int = option(0, "further users with windows, each over rows of his own condition")
    joined: int = option(0, "further users whose thousandth is joined with a table")
    batches: int = option(
        20, "full batches of rows that are measured, after as many as Java needs to compile what is used"
    )
    warm: int = option(6, "full batches before")


@dataclass(frozen=True)
class Span:
    """From .. to, in ms of UTC."""

    begin: float
    end: float


@dataclass(frozen=True)
class Measured:
    """A batch: the part of its time in which no task ran, and by what its longest task exceeds its shortest."""

    length_ms: float
    idle: float
    unequal: float


def measure(options: Load, recorder: Recorder) -> None:
    """A cluster with one worker, then with two."""
    table = recorder.table(
        "clusters",
        [
            Column("workers"), Column("full batches"), Column("length of a batch, median", "ms", ",.0f", better="less"),
            Column("no task runs, of its time", "%", ".0f", better="less"),
            Column("longest task ÷ shortest", form=".2f", better="less"),
        ],
    )  # fmt: skip
    for workers in options.workers:
        recorder.progress(f"{workers} worker{'s' * (workers != 1)}")
        batches = _batches(workers, options, recorder)[-options.batches :]
        idle, unequal = (median(getattr(one, name) for one in batches) for name in ("idle", "unequal"))
        table.row(workers, len(batches), median(one.length_ms for one in batches), 100 * idle, unequal)
        named = f"{workers} one-core worker{'s' * (workers != 1)}"
        named += f", {options.windows} with windows" if options.windows else ""
        named += f", {options.joined} with a table" if options.joined else ""
        recorder.figure(
            f"of a full batch's time no task runs, {named}",
            100 * idle,
            "%",
            ".0f",
            better="less",
            goal=25,
            main=True,
        )
        recorder.figure(
            f"its longest task ÷ its shortest, {named}", unequal, "", ".2f", better="less", goal=1.2
        )


def _batches(workers: int, options: Load, recorder: Recorder) -> list[Measured]:
    """The full ones, in turn."""
    with tempfile.TemporaryDirectory(prefix="skerry-bench-") as directory:
        events = Path(directory) / "events"
        events.mkdir()
        with _cluster(Path(directory) / "cluster", workers, events) as master:
            state = State(SINCE, PROJECT, ("--master", master))
            with driven(state) as gateway:
                _run(gateway, options, recorder)
        # It is whole once the driver has stopped.
        return list(_full(line for file in sorted(events.iterdir()) for line in file.open()))


@contextmanager
def _cluster(directory: Path, workers: int, events: Path) -> Iterator[str]:
    cluster = Cluster(directory)
    before = os.environ.get("SPARK_CONF_DIR")
    with (directory / "spark-defaults.conf").open("a") as settings:
        for name, value in {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            # As a gateway's own executors have them, not as those of tests, which are over soon.
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
            "spark.executor.memory": "900m",
        }.items():
            settings.write(f"{name} {value}\n")
    os.environ["SPARK_CONF_DIR"] = cluster.configuration
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster.url
    finally:
        if before is None:
            del os.environ["SPARK_CONF_DIR"]
        else:
            os.environ["SPARK_CONF_DIR"] = before
        cluster.close()


def _run(gateway: Driven, options: Load, recorder: Recorder) -> None:
    rng, width = np.random.default_rng(1), SPAN // 1000
    for _ in range(options.users):
        low = int(rng.integers(0, SPAN - width))
        gateway.ask(low, low + width - 1)
    if options.joined:
        tables = gateway.daemon.data / "tables"
        tables.mkdir(exist_ok=True)
        (tables / "places.csv").write_text(
            "node,name\n" + "".join(f"{n},hall {n % 7}\n" for n in range(1, MOTES + 1))
        )
        wait_for(lambda: any(table["name"] == "places" for table in gateway.client.tables()))
    for number in range(options.windows):
        window = f"AVG(light, {1 + number % 10} min) AS mean, COUNT(*, {1 + number % 10} min) AS n"
        gateway.client.query(
            f"SELECT epoch, nodeid % 4 AS part, {window} FROM sensors WHERE light > {100 * number} GROUP BY nodeid % 4 "
            "SAMPLE PERIOD 1 s", linger_s=None,
        )  # fmt: skip
    for _ in range(options.joined):
        low = int(rng.integers(0, SPAN - width))
        gateway.client.query(
            f"SELECT s.nodeid, s.light, p.name FROM sensors AS s, places AS p WHERE p.node = s.nodeid "
            f"AND s.light BETWEEN {low} AND {low + width - 1} SAMPLE PERIOD 1 s", linger_s=None,
        )  # fmt: skip
    gateway.begin()
    gateway.append(1)
    gateway.through()
    for _ in recorder.steps(range(options.warm + options.batches), "batches"):
        # One more than there is to do, so that each that begins can be full.
        gateway.append(BATCH)
    gateway.through()


def _full(lines: Iterable[str]) -> Iterator[Measured]:
    tasks: list[Span] = []
    batches: list[tuple[Span, int]] = []
    for line in lines:
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd":
            info = event["Task Info"]
            tasks.append(Span(info["Launch Time"], info["Finish Time"]))
        elif event["Event"].endswith("QueryProgressEvent"):
            progress = event["progress"]
            if isinstance(progress, str):
                progress = json.loads(progress)
            begin = 1e3 * datetime.fromisoformat(progress["timestamp"]).timestamp()
            [source] = progress["sources"]
            rows = row_of(source["endOffset"]) - row_of(source["startOffset"])
            batches.append((Span(begin, begin + progress["durationMs"].get("triggerExecution", 0)), rows))
    for batch, rows in batches:
        if rows >= FULL * BATCH:
            own = sorted(
                (task for task in tasks if batch.begin <= task.begin < batch.end), key=lambda task: task.begin
            )
            lengths = [task.end - task.begin for task in own]
            length = batch.end - batch.begin
            yield Measured(length, 1 - _covered(own) / length, max(lengths) / max(1, min(lengths)))


def _covered(spans: list[Span]) -> float:
    """How long at least one of them lasts; they are in the order of their beginnings."""
    total, reached = 0.0, 0.0
    for span in spans:
        total += max(0.0, span.end - max(span.begin, reached))
        reached = max(reached, span.end)
    return total


BENCHMARK = Benchmark(
    measure, quick=Load(workers=(1,), users=10, windows=2, joined=2, batches=2, warm=1), minutes=6
)
