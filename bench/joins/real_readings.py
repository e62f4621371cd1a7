"""What learning makes of real readings, the lab's temperatures and a redwood's humidity: Aspen's figure 13, by a model.

Motes less than 5 m apart are a pair; two readings match where they differ by more. It begins with 100 % for all shares, with which all are
joined at the base; "full knowledge" is placed by what all readings come to. Hosts are chosen as the gateway does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, pi, sin
from typing import TYPE_CHECKING

import duckdb
import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

from bench.measuring.join_learning import learned
from bench.measuring.join_meter import Load, Metered, Readings
from bench.measuring.join_network import Field
from bench.measuring.join_queries import Asked, query_3
from bench.measuring.join_series import CHOSEN, placed_by, priced
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column, Result
from hil_tests.datasets import data
from hil_tests.lab import positions
from skerry.joins.placement.estimates import Estimates, Rates
from skerry.joins.placement.pair import BASE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Learnt places cost so much more than those of who knows everything, at most.
ABOVE = 10.0
WINDOW = 1
#: Two readings match that differ by more: °C, and % of relative humidity.
LAB_DIFFERS, REDWOOD_DIFFERS = 1.0, 5.0
#: Epochs of the redwood's log in which most of its motes were there.
REDWOOD_FROM = 2500
TREE = "interior"
SERIES = (BASE, "full knowledge", "learnt")
_DIRECTIONS = (
    "N",
    "NNE",
    "NE",
    "ENE",
    "E",
    "ESE",
    "SE",
    "SSE",
    "S",
    "SSW",
    "SW",
    "WSW",
    "W",
    "WNW",
    "NW",
    "NNW",
)


@dataclass(frozen=True)
class Options(SeedOptions):
    epochs: int = option(2000, "sample periods")


@dataclass(frozen=True)
class Data:
    """Motes at places, and by mote and epoch a reading in thousandths, NaN where there is none."""

    name: str
    field: Field
    readings: NDArray[np.float64]
    differ: float


def lab(epochs: int) -> Data:
    """Its own places and links; two motes have no readings."""
    field = Field.drawn("lab", 0, np.random.default_rng(0))
    number = {place: mote for mote, place in positions().items()}
    own = [number[float(x), float(y)] for x, y in field.places]
    table = parquet.read_table(data("lab-temperature.parquet")).sort_by("step").slice(0, epochs)
    names = [f"mote{mote:02d}" for mote in own]
    none = np.full(epochs, np.nan)
    readings = [table[name].to_numpy() if name in table.column_names else none for name in names]
    return Data("lab, temperature", field, np.array(readings), LAB_DIFFERS)


def redwood(epochs: int) -> Data:
    """Motes of one tree, by height and by how far to which side of the trunk they stand; the gateway at its foot. Who hears whom is not
    known: all within the least reach that connects them."""
    places: dict[int, tuple[float, float]] = {}
    for line in data("redwood-mote-locations.txt").read_text().split("\n")[1:]:
        fields = line.split()
        if len(fields) == 5 and fields[2] in _DIRECTIONS and fields[4] == TREE:
            # Seen from the south: what lies beside the trunk, and the height above the ground.
            beside = float(fields[3]) * sin(2 * pi * _DIRECTIONS.index(fields[2]) / len(_DIRECTIONS))
            places[int(fields[0])] = beside, float(fields[1])
    with duckdb.connect() as database:
        found = database.execute(
            f"""SELECT nodeid, epoch, humidity FROM '{data("redwood-log.parquet")}'
            WHERE epoch >= {REDWOOD_FROM} AND epoch < {REDWOOD_FROM + epochs} AND NOT isnan(humidity)"""
        ).fetchall()
    motes = sorted({mote for mote, _, _ in found} & places.keys())
    at = {mote: place + 1 for place, mote in enumerate(motes)}
    readings = np.full((len(motes) + 1, epochs), np.nan)
    for mote, epoch, humidity in found:
        if mote in at:
            readings[at[mote], epoch - REDWOOD_FROM] = humidity
    stand = np.array([(0.0, min(y for _, y in places.values())), *(places[mote] for mote in motes)])
    apart = np.array([[hypot(*(one - other)) for other in stand] for one in stand])
    for reach in range(1, 100):
        field = Field.of(stand, (apart <= reach) & ~np.eye(len(stand), dtype=bool))
        if field is not None:
            return Data("redwood, humidity", field, readings, REDWOOD_DIFFERS)
    raise ValueError("the redwood's motes stand farther apart than 100 m")


def measured(of: Data) -> tuple[Asked, Metered]:
    """The query, and its readings: motes that have none send none."""
    known = ~np.isnan(of.readings)
    values = np.round(np.where(known, of.readings, 0) * 1000).astype(np.int64)
    readings = Readings({"s": known, "t": known}, values, differ=round(of.differ * 1000) + 1)
    return query_3(of.field), Metered(len(of.field), readings, WINDOW)


def known_rates(asked: Asked, metered: Metered) -> Rates:
    """Of each mote and pair, over all readings."""
    passes, epochs = metered.readings.passes, metered.readings.epochs
    share = {mote: float(passes["s"][mote].mean()) for mote in range(len(asked.field))}
    pairs = {}
    for s, t in asked.query.pairs:
        met = WINDOW * epochs * (share[s] + share[t])
        pairs[s, t] = float(metered.answers([(s, t)]).sum()) / met if met else 0.0
    return Rates(Estimates(1.0, 1.0, 1.0, WINDOW), share, share, pairs)


def measure(options: Options, recorder: Recorder) -> None:
    """A table of both."""
    table = recorder.table(
        "series",
        [
            Column("readings"), Column("motes", "", "d"), Column("pairs", "", "d"), Column("σst", "%", ".1f"), Column("series"),
            Column("all", "kB", ".1f"), Column("at the root", "kB", ".1f"), Column("most loaded mote", "kB", ".1f"),
            Column("pairs at motes", "", "d"), Column("changes", "", "d"),
        ],
        title=f"Figure 13: query 3 over {options.epochs} sample periods, changes included",
    )  # fmt: skip
    for make in (lab, redwood):
        of = make(options.epochs)
        recorder.progress(of.name)
        asked, metered = measured(of)
        price, root = priced("bytes"), asked.field.tree.root
        planned = placed_by(asked, CHOSEN, price)
        known = known_rates(asked, metered)
        long = learned(asked, metered, planned, Rates(Estimates(1.0, 1.0, 1.0, WINDOW)), price)
        full, base = planned(known), placed_by(asked, BASE, price)(known)
        loads: dict[str, Load] = {
            BASE: metered.load(base),
            "full knowledge": metered.load(full),
            "learnt": long.load(0, options.epochs),
        }
        hosted = {
            BASE: 0,
            "full knowledge": sum(mote != root for mote in full.places.values()),
            "learnt": sum(mote != root for mote in long.stretches[-1].plan.places.values()),
        }
        match = float(np.mean(list(known.pairs.values())))
        for name, load in loads.items():
            table.row(
                of.name, len(of.field), len(asked.query.pairs), 100 * match, name, load.total / 1e3, load.root / 1e3, load.most / 1e3,
                hosted[name], long.changes if name == "learnt" else 0,
            )  # fmt: skip
        recorder.figure(
            f"{of.name}: learnt places above full knowledge", 100 * (loads["learnt"].total / loads["full knowledge"].total - 1), "%",
            "+.1f", better="less", goal=ABOVE, main=True,
        )  # fmt: skip
        recorder.figure(
            f"{of.name}: full knowledge ÷ at base",
            loads["full knowledge"].total / loads[BASE].total,
            "×",
            ".2f",
        )


def draw(result: Result) -> Figure:
    """Bytes of all series."""
    from matplotlib.figure import Figure as Chart  # noqa: PLC0415 (what measures does without)

    from bench.runner.charts import dress  # noqa: PLC0415

    chart = Chart(figsize=(9, 4), layout="constrained")
    table = result.table("series")
    names = list(dict.fromkeys(map(str, table.column("readings"))))
    for axes, name in zip(chart.subplots(1, len(names)), names, strict=True):
        rows = [row for row in table.rows if row[0] == name]
        for place, column in enumerate(("all", "at the root", "most loaded mote")):
            values = [row[[one.name for one in table.columns].index(column)] for row in rows]
            axes.bar([x + (place - 1) * 0.25 for x in range(len(rows))], values, 0.25, label=column)
        axes.set_xticks(range(len(rows)), [str(row[4]) for row in rows], fontsize="x-small")
        dress(axes, "", "kB", name)
    return chart


BENCHMARK = Benchmark(measure, quick=Options(epochs=300), minutes=2, chart=draw)
