"""What becomes of a join whose join mote dies in the midst: Aspen's figure 14, on emulated motes.

One pair, at the end of two rows of six motes each, is joined in the network, at a mote between both. That mote dies for good at 45, 50
and 55 % of the run. Answers are held against DuckDB's over the motes' readings, which another query has; how much later they come than the
median of those before the death is told in sample periods.
"""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from itertools import product
from math import ceil, floor
from statistics import median
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from bench.measuring.emulated import described
from bench.measuring.parallel import on_all_cores
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result, number
from skerry_testbed.asking import Asking
from skerry_testbed.network import Fault, Field, Network, Query
from skerry_testbed.pytest import disc, grid
from skerry_testbed.runner import Testbed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD_S, WINDOW = 10, 1
#: s and t: at the end of two rows of motes, of which each hears those beside and across, so that no other one is cut off.
PAIR = 5, 11
ROOM = 5
#: By σst, the difference in °C that two readings have as often: both are the same with noise of 2 °C.
DIFFERENCES = {0.1: 3.625, 0.2: 2.381}
#: Shares of the run after which the mote dies.
DEATHS = (0.45, 0.5, 0.55)
ASKED_S, COUNTED_S = 120.0, 300.0
#: Sample periods by which answers are later once the join mote has died: the median and the most of those that are touched by it.
MEDIAN, MOST = 6.0, 12.0
#: Answers of so many sample periods from before the death on to behind it are those that it may touch.
TOUCHED = -6, 18
BY_DUCKDB = """
WITH ranked AS (SELECT *, row_number() OVER (PARTITION BY nodeid ORDER BY epoch) AS rank FROM readings)
SELECT s.epoch, t.epoch FROM ranked AS s, ranked AS t
WHERE s.nodeid = $s AND t.nodeid = $t AND s.temp - t.temp > $least AND CASE WHEN s.epoch <= t.epoch
THEN (SELECT count(*) FROM ranked AS x WHERE x.nodeid = s.nodeid AND x.epoch <= t.epoch) - s.rank < $window
ELSE (SELECT count(*) FROM ranked AS x WHERE x.nodeid = t.nodeid AND x.epoch <= s.epoch) - t.rank < $window END
"""


@dataclass(frozen=True)
class Options(SeedOptions):
    minutes: int = option(25, "of virtual time for each run")
    seeds: int = option(2, "networks' readings and radios drawn anew")


@dataclass(frozen=True)
class Job:
    """A run; ``death``: s, and the mote; None: nobody dies."""

    options: Options
    seed: int
    share: float
    death: tuple[float, int] | None = None


@dataclass(frozen=True)
class Outcome:
    """``late``: by answer, named by both epochs, s from the later row's sample; ``expected``: DuckDB's; ``host``: who joined at first."""

    late: dict[tuple[int, int], float]
    twice: int
    expected: set[tuple[int, int]]
    host: int | None
    parents: dict[int, int | None]


def network(job: Job) -> Network:
    """Any two motes of the room are a pair, of which there is one."""
    join = (
        "SELECT s.epoch AS e, t.epoch AS f FROM sensors AS s, sensors AS t "
        f"WINDOW {WINDOW} ROWS WHERE s.room = t.room AND s.nodeid < t.nodeid AND s.temp - t.temp > {DIFFERENCES[job.share]} "
        f"SAMPLE PERIOD {PERIOD_S} s ESTIMATE pair {100 * job.share:g} % COST BYTES JOIN IN NETWORK"
    )
    readings = f"SELECT nodeid, epoch, temp FROM sensors WHERE room = {ROOM} SAMPLE PERIOD {PERIOD_S} s"
    motes = grid(6, 2, spacing=10, boards=("iris", "cc2538"))
    for mote in motes:
        mote.boot, mote.room = 0, ROOM if mote.id in PAIR else 0
    faults = [] if job.death is None else [Fault(at=job.death[0], kind="kill", mote=job.death[1])]
    asked = [Query(sql=join, at=ASKED_S), Query(sql=readings, at=ASKED_S)]
    fields = {"temp": Field(base=20.0, noise=2.0)}
    return described("grid", motes, disc(15), job.seed, fields, query=asked, fault=faults)


def run(job: Job) -> Outcome:
    """One run."""
    late: dict[tuple[int, int], float] = {}
    readings: list[dict[str, Any]] = []
    twice = 0

    def heard(text: str) -> None:
        nonlocal twice
        told = json.loads(text)
        row = told["row"]
        if "temp" in row:
            readings.append(row)
            return
        twice += (row["e"], row["f"]) in late
        late[row["e"], row["f"]] = told["at"] - max(row["e"], row["f"]) * PERIOD_S

    made = network(job)
    with contextlib.redirect_stdout(io.StringIO()):
        bed = Testbed(made)
    with contextlib.closing(Asking(bed, made.query, heard, lambda _: None)) as asking:
        bed.advance(COUNTED_S)
        hosts = [one for joined in asking.joined.values() for one in joined.get("hosts", [])]
        bed.advance(job.options.minutes * 60 - COUNTED_S)
        report = bed.report()
    with duckdb.connect(config={"threads": 1}) as database:
        database.register("readings", pa.Table.from_pylist(readings))
        wanted = {"s": PAIR[0], "t": PAIR[1], "least": DIFFERENCES[job.share], "window": WINDOW}
        expected = set(database.execute(BY_DUCKDB, wanted).fetchall())
    parents = {mote["node"]: mote["parent"] for mote in report["motes"]}
    return Outcome(late, twice, expected, hosts[0]["mote"] if hosts else None, parents)


def measure(options: Options, recorder: Recorder) -> None:
    """First runs in which nobody dies, then those in which the mote dies that joined in them."""
    seeds = range(options.seed, options.seed + options.seeds)
    first = [Job(options, seed, share) for seed, share in product(seeds, DIFFERENCES)]
    whole = dict(
        zip(first, recorder.steps(on_all_cores(run, first), "nobody dies", total=len(first)), strict=True)
    )
    length = options.minutes * 60
    dying = []
    for job, outcome in whole.items():
        if outcome.host is None or outcome.host in (0, *PAIR):
            recorder.problem(f"seed {job.seed}: the pair is joined at {outcome.host}, and not between both")
            continue
        dying += [Job(options, job.seed, job.share, (share * length, outcome.host)) for share in DEATHS]
    died = dict(
        zip(dying, recorder.steps(on_all_cores(run, dying), "the host dies", total=len(dying)), strict=True)
    )
    table = recorder.table(
        "answers",
        [
            Column("σst", "%", ".0f"), Column("seed", "", "d"), Column("host"), Column("dies at", "s", ".0f"), Column("answers", "", "d"),
            Column("DuckDB's", "", "d"), Column("lacking, sampled before", "", "d"), Column("lacking, sampled later", "", "d"),
            Column("later, median", "periods", ".1f"), Column("later, most", "periods", ".1f"),
        ],
        title=f"Answers of the pair {PAIR[0]}, {PAIR[1]}: those that lack, and by how much those around the death are later",
        labels=2,
    )  # fmt: skip
    later: list[float] = []
    lacking = [0, 0]
    for job, outcome in (*whole.items(), *died.items()):
        lack, own = _row(job, outcome, options, recorder)
        table.row(
            100 * job.share, job.seed, str(outcome.host), job.death[0] if job.death else None, len(outcome.late), len(outcome.expected),
            *lack, median(own) if own else None, max(own, default=None),
        )  # fmt: skip
        if job.death is not None:
            later += own
            lacking = [one + other for one, other in zip(lacking, lack, strict=True)]
    if later:
        recorder.figure(
            "sample periods by which answers are later once the join mote has died, median", median(later), "", ".1f", better="less",
            goal=MEDIAN, main=True,
        )  # fmt: skip
        recorder.figure("… the most", max(later), "", ".1f", better="less", goal=MOST, main=True)
    recorder.figure("answers that lack, a row of which was sampled before the death", lacking[0], "", "d")
    recorder.figure(
        "answers that lack, both rows sampled after it", lacking[1], "", "d", better="less", goal=0, main=True
    )


def _row(
    job: Job, outcome: Outcome, options: Options, recorder: Recorder
) -> tuple[tuple[int, int], list[float]]:
    """Answers that lack, and by how many periods those that the death may touch are later than the median of all before it."""
    first, last = ceil(COUNTED_S / PERIOD_S), floor(options.minutes * 60 / PERIOD_S) - TOUCHED[1]
    expected = {name for name in outcome.expected if first <= max(name) <= last}
    had = {name for name in outcome.late if first <= max(name) <= last}
    if wrong := had - outcome.expected:
        recorder.problem(f"seed {job.seed}, {job.share:.0%}: answers that DuckDB has not: {sorted(wrong)}")
    if outcome.twice:
        recorder.problem(f"seed {job.seed}, {job.share:.0%}: {outcome.twice} answers came twice")
    lack = expected - had
    if job.death is None:
        return (len(lack), 0), []
    died = job.death[0] / PERIOD_S
    before = sum(min(name) < died for name in lack)
    usual = median([late for name, late in outcome.late.items() if first <= max(name) < died + TOUCHED[0]])
    touched = [name for name in had if died + TOUCHED[0] <= max(name) <= died + TOUCHED[1]]
    return (before, len(lack) - before), [(outcome.late[name] - usual) / PERIOD_S for name in touched]


def draw(result: Result) -> Figure:
    """By run the median and the most."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    chart = Chart(figsize=(9, 4), layout="constrained")
    axes = chart.subplots()
    table = result.table("answers")
    names = [one.name for one in table.columns]
    rows = [
        dict(zip(names, row, strict=True)) for row in table.rows if row[names.index("dies at")] is not None
    ]
    for place, column in enumerate(("later, median", "later, most")):
        at = [x + (place - 0.5) * 0.4 for x in range(len(rows))]
        axes.bar(at, [number(row[column]) or 0.0 for row in rows], 0.4, label=column)
    labels = [f"{row['σst']:.0f} %, seed {row['seed']}\n{row['dies at']:.0f} s" for row in rows]
    axes.set_xticks(range(len(rows)), labels, fontsize="x-small")
    dress(axes, "", "sample periods", "the join mote dies")
    return chart


BENCHMARK = Benchmark(measure, quick=Options(minutes=15, seeds=1), minutes=10, chart=draw)
