"""A week of virtual time on ten motes: rows, resets, memory, clocks. ``python -m bench.week [--days N]``"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from statistics import median

from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry_protocol.packets import FOREVER, PacketType
from skerry_testbed.network import Environment, Field, Network, check
from skerry_testbed.pytest import NetworkHandle, disc, grid

PERIOD_S = 60
DAY_S = 86_400


def measure(days: float, seed: int) -> None:
    """One run, printed as a table."""
    motes = grid(5, 2, spacing=10, boards=("iris", "cc2538"))
    field = Environment(fields={"temp": Field(base=20.0, amplitude=8.0, noise=0.1)}, update="60 s")
    net = NetworkHandle(
        check(Network(name="week", seed=seed, mote=motes, radio=disc(12, 0.95), environment=field))
    )
    began = time.monotonic()
    net.advance("2.5s")
    net.line.connect()
    net.advance("120s")
    start = (int(net.line.network_time()) + 30) // PERIOD_S * PERIOD_S + PERIOD_S
    for number, sql in (
        (1, "SELECT nodeid, temp FROM sensors"),
        (2, "SELECT AVG(temp), MAX(temp) FROM sensors"),
    ):
        plan = plan_query(f"{sql} SAMPLE PERIOD {PERIOD_S} s")
        assert isinstance(plan, QueryPlan)
        net.line.install(number, encode(merge([plan]), start, FOREVER))
    end = net.now + days * DAY_S
    rows: set[tuple[int, int]] = set()
    covered: Counter[int] = Counter()
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    late: list[float] = []
    delays: list[float] = []
    boots: set[tuple[int, int]] = set()
    dropped: dict[int, int] = {}
    while net.now < end:
        net.advance(min(3600, end - net.now))
        for record in net.line.of(PacketType.RESULT, 1):
            rows.add((record.body.node, record.body.epoch))
            late.append(record.at - record.body.epoch * PERIOD_S)
        for record in net.line.of(PacketType.PARTIAL, 2):
            covered[record.body.epoch] += record.body.motes
        for record in net.line.of(PacketType.STATUS):
            body = record.body
            last[body.node] = body.free_ram
            boots.add((body.node, body.boots))
            dropped[body.node] = body.dropped
        net.line.records.clear()
        net.frames.clear()
        if net.now >= end or net.now // DAY_S > len(delays):
            delays.append(median(late))
            late.clear()
            if len(delays) == 1:
                first = dict(last)
            print(f"day {len(delays)}: {len(rows):,} rows", file=sys.stderr, flush=True)
    epochs = range(start // PERIOD_S, int(net.line.network_time()) // PERIOD_S - 1)
    wanted = len(epochs) * len(motes)
    got = sum(epoch in epochs for _, epoch in rows)
    whole = sum(covered[epoch] == len(motes) for epoch in epochs)
    print(f"{days:g} days on {len(motes)} motes; seed {seed}; {time.monotonic() - began:.0f} s")
    print("| what | measured |\n| --- | --- |")
    print(f"| rows | {got:,} of {wanted:,} ({got / wanted:.3%}) |")
    print(f"| averages over all motes | {whole:,} of {len(epochs):,} ({whole / len(epochs):.3%}) |")
    print(f"| starts of motes | {len(boots)}: one each is {len(motes)} |")
    print(f"| records lost to full queues | {sum(dropped.values())} |")
    print(
        f"| RAM never used, least change of a mote after the first day, bytes | {min(last[node] - first[node] for node in last)} |"
    )
    print(
        "| from an epoch's begin to its row at the root, "
        f"median of the first and of the last day | {delays[0]:.2f} s, {delays[-1]:.2f} s |"
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    measure(options.days, options.seed)


if __name__ == "__main__":
    main()
