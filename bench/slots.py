"""Rows, frames, radio and delay in a star, a deep line, a grid and a small network, once the root has told slots that suit them."""

from __future__ import annotations

import argparse
import math
import statistics
import time
from dataclasses import dataclass

from bench.machine import table
from hil_tests.lab import on_time
from hil_tests.queries import ask, rows
from skerry.planner.model.plans import MoteQuery
from skerry_protocol.packets import PacketType
from skerry_testbed.network import Mote, Network, Radio, check
from skerry_testbed.pytest import NetworkHandle, disc, grid, line_of

#: Time to join, and for the slots to follow.
SETTLE_S = 420
#: Rows that come later count as lost.
PATIENCE_S = 60
PERIOD_S = 5


@dataclass(frozen=True)
class Scenario:
    """Motes, links, and what is asked of them."""

    name: str
    motes: list[Mote]
    radio: Radio
    aggregate: bool = False


def star(count: int) -> list[Mote]:
    """The root, and all others on a circle of 10 m around it; of their numbers each seventh is left out."""
    numbers = [n for n in range(1, 2 * count) if n % 7][:count]
    angles = [math.tau * i / count for i in range(count)]
    around = [
        Mote(id=n, x=10 * math.cos(a), y=10 * math.sin(a)) for n, a in zip(numbers, angles, strict=True)
    ]
    return [Mote(id=0, x=0, y=0, root=True), *around]


SCENARIOS = {
    "star": Scenario("60 motes around the root", star(60), disc(25, reception=0.95)),
    "line": Scenario("24 motes in a line, AVG", line_of(24, spacing=10), disc(12, reception=0.97), True),
    "grid": Scenario("6×5 motes", grid(6, 5, spacing=10), disc(15, reception=0.95)),
    "small": Scenario("3×2 motes", grid(3, 2, spacing=10), disc(12, reception=0.97)),
}


def arrivals(net: NetworkHandle, query: MoteQuery, first: int, epochs: int) -> list[float]:
    """Seconds from the epoch to each reading's arrival, by itself or in a partial state."""
    offset = net.now - net.line.network_time()
    found, seen = [], set()
    for row in rows(net.line, 1, query):
        key = row["nodeid"], row["epoch"]
        if key not in seen and first <= row["epoch"] < first + epochs:
            seen.add(key)
            found.append(row["at"] - row["epoch"] * PERIOD_S - offset)
    for record in net.line.of(PacketType.PARTIAL, 1):
        if first <= record.body.epoch < first + epochs:
            found += [record.at - record.body.epoch * PERIOD_S - offset] * record.body.motes
    return sorted(found)


def run(scenario: Scenario, epochs: int, seed: int) -> tuple[str, str, str, str]:
    """Readings that arrived, frames for each, radio duty cycle, delay."""
    net = NetworkHandle(
        check(Network(name=scenario.name, seed=seed, mote=scenario.motes, radio=scenario.radio))
    )
    net.advance(2.5)
    net.line.connect()
    net.advance(60 - net.now)
    what = "AVG(temp)" if scenario.aggregate else "nodeid, temp"
    query = ask(net, 1, f"SELECT {what} FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    net.advance(SETTLE_S - net.now)
    motes = {n: mote for n, mote in net.motes.items() if n}
    on = {n: on_time(mote.energy) for n, mote in motes.items()}
    sent = sum(mote.counters["sent"] for mote in motes.values())
    began, first = net.now, math.ceil(net.line.network_time() / PERIOD_S) + 1
    net.advance(epochs * PERIOD_S)
    duty = [(on_time(mote.energy) - on[n]) / (net.now - began) for n, mote in motes.items()]
    sent = sum(mote.counters["sent"] for mote in motes.values()) - sent
    net.advance(PATIENCE_S)
    delays = arrivals(net, query, first, epochs)
    expected = epochs * len(net.motes)
    quantiles = [delays[min(len(delays) - 1, int(len(delays) * q))] for q in (0.5, 0.95, 1)]
    return (
        f"{len(delays) / expected:.2%} of {expected}",
        f"{sent / len(delays):.2f}",
        f"{statistics.mean(duty):.2%}, {max(duty):.2%}",
        ", ".join(f"{q:.2f}" for q in quantiles),
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("scenario", nargs="*", help=f"of {', '.join(SCENARIOS)}; all unless told otherwise")
    options = parser.parse_args()
    for name in options.scenario or SCENARIOS:
        if name not in SCENARIOS:
            parser.error(f"scenario '{name}' is unknown: known are {', '.join(SCENARIOS)}")
        began = time.monotonic()
        arrived, frames, duty, delay = run(SCENARIOS[name], options.epochs, options.seed)
        table(
            f"{SCENARIOS[name].name}, seed {options.seed}, {options.epochs} epochs of {PERIOD_S} s "
            f"({time.monotonic() - began:.0f} s)",
            [
                ("readings that arrive", arrived, "—"),
                ("frames for each, repetitions and beacons included", frames, "—"),
                ("radio duty cycle, mean and worst", duty, "—"),
                ("seconds from the epoch to the reading: median, 95 %, last", delay, "—"),
            ],
        )


if __name__ == "__main__":
    main()
