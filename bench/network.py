"""How much of what motes sample arrives, and what their radios take: 54 motes of the Intel lab, with its links or a library's."""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass

import msgspec

from bench import library_links
from bench.machine import stoppable, table
from hil_tests.lab import heard, lab, on_time, reachable
from hil_tests.queries import ask, rows
from skerry_testbed.network import Fault, Network
from skerry_testbed.pytest import NetworkHandle

PERIOD_S = 30
#: Time to join, and to learn the neighbourhood, before it counts.
SETTLE_S = 300
#: A row that is later than this counts as lost: the run ends so long after the last epoch.
PATIENCE_S = 90
#: Epochs from one line about progress to the next.
SHOW_EVERY = 20


@dataclass
class Outcome:
    """What a run came to. ``delays`` in s from the epoch to the row's arrival, with its mote and epoch, the shortest first."""

    epochs: int
    expected: int
    arrived: dict[int, int]
    duty: dict[int, float]
    delays: list[tuple[float, int, int]]
    frames: float
    lost: dict[int, int]


def losses(network: Network, epochs: int) -> list[Fault]:
    """5 % of the motes die and 5 % reboot, at times drawn from the seed."""
    rng = random.Random(network.seed)
    motes = rng.sample([n for n in sorted(reachable(heard(network))) if n], 6)
    end = 2.5 + 2 * SETTLE_S + epochs * PERIOD_S
    times = [rng.uniform(2 * SETTLE_S, end - 10 * PERIOD_S) for _ in motes]
    kinds = ["kill"] * 3 + ["reboot"] * 3
    return [
        Fault(at=f"{at:.0f} s", kind=kind, mote=mote)  # type: ignore[arg-type]
        for at, kind, mote in zip(times, kinds, motes, strict=True)
    ]


def run(network: Network, epochs: int) -> Outcome:
    """The query over so many epochs, or fewer when it is stopped, counted once the network has settled."""
    net = NetworkHandle(network)
    net.advance(2.5)
    net.line.connect()
    net.advance(SETTLE_S)
    query = ask(net, 1, f"SELECT nodeid, temp FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    # Until the program has come everywhere, without counting.
    net.advance(SETTLE_S)
    before = {n: on_time(mote.energy) for n, mote in net.motes.items()}
    sent = {n: mote.counters["sent"] for n, mote in net.motes.items()}
    began = net.now
    first = math.ceil(net.line.network_time() / PERIOD_S) + 1
    alive: dict[int, int] = defaultdict(int)
    motes = reachable(heard(network))
    done = 0
    with stoppable() as stopped:
        while done < epochs and not stopped():
            net.advance(PERIOD_S)
            for n, mote in net.motes.items():
                alive[n] += mote.alive
            done += 1
            if done % SHOW_EVERY == 0:
                print(f"{done} of {epochs} epochs", file=sys.stderr, flush=True)
    duty = {
        n: (on_time(mote.energy) - before[n]) / (net.now - began)
        for n, mote in net.motes.items()
        if mote.alive
    }
    frames = sum(mote.counters["sent"] - sent[n] for n, mote in net.motes.items()) / (len(motes) * done)
    net.advance(PATIENCE_S)
    arrived: dict[int, int] = defaultdict(int)
    seen: set[tuple[int, int]] = set()
    delays = []
    offset = net.now - net.line.network_time()
    for row in rows(net.line, 1, query):
        key = row["nodeid"], row["epoch"]
        if key not in seen and first <= row["epoch"] < first + done:
            seen.add(key)
            arrived[row["nodeid"]] += 1
            delays.append((row["at"] - row["epoch"] * PERIOD_S - offset, *key))
    # A mote that died in the midst of an epoch may have sent its row or not.
    lost = {n: max(0, alive[n] - arrived[n]) for n in motes}
    return Outcome(done, sum(alive[n] for n in motes), dict(arrived), duty, sorted(delays), frames, lost)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--losses", action="store_true", help="5 %% of the motes die and 5 %% reboot during the run"
    )
    parser.add_argument(
        "--links",
        choices=["lab", "library"],
        default="lab",
        help="measured in the lab, or fitted to a library's",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="the motes stand so many times as far apart")
    options = parser.parse_args()
    if options.scale != 1 and options.links == "lab":
        parser.error(
            "--scale: the lab's links were measured where its motes stand; give --links library, too"
        )
    began = time.monotonic()
    fitted = library_links.fit().radio() if options.links == "library" else None
    network = lab(options.seed, fitted, options.scale)
    if options.losses:
        network = msgspec.structs.replace(network, fault=losses(network, options.epochs))
    result = run(network, options.epochs)
    own = [value for n, value in result.duty.items() if n]
    own_worst = max((n for n in result.duty if n), key=result.duty.__getitem__)
    delays = [delay for delay, _, _ in result.delays]
    what = "while motes die and reboot" if options.losses else "steady"
    took = time.monotonic() - began
    where = f"{options.links}'s links" + (
        f", {options.scale:g} times as far apart" if options.scale != 1 else ""
    )
    how_long = f"{result.epochs} epochs of {PERIOD_S} s ({took:.0f} s)"
    table(
        f"54 motes of the lab, {where}, {what}, seed {options.seed}, {how_long}",
        [
            (
                "rows of living motes that any path reaches",
                f"{1 - sum(result.lost.values()) / result.expected:.4%} of {result.expected}",
                "99.5 %" if options.losses else "99.9 % (TinyDB: 62 %)",
            ),
            ("radio duty cycle, mean", f"{statistics.mean(own):.2%}", "1 %"),
            ("radio duty cycle, median", f"{statistics.median(own):.2%}", "—"),
            ("radio duty cycle, worst", f"{max(own):.2%} (mote {own_worst})", "3 %"),
            ("frames per mote and epoch, repetitions and beacons included", f"{result.frames:.2f}", "—"),
            (
                "seconds from the epoch to the row: median, 95 %, 99.9 %, last",
                ", ".join(
                    f"{delays[min(len(delays) - 1, int(len(delays) * q))]:.1f}" for q in (0.5, 0.95, 0.999, 1)
                ),
                "—",
            ),
        ],
    )
    worst = sorted(((count, n) for n, count in result.lost.items() if count), reverse=True)[:8]
    print("\nrows lost: " + (", ".join(f"mote {n} {count}" for count, n in worst) or "none"))
    latest = ", ".join(f"{delay:.1f} s mote {n} epoch {epoch}" for delay, n, epoch in result.delays[:-9:-1])
    print(f"rows that took longest: {latest}")


if __name__ == "__main__":
    main()
