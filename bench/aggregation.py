"""Frames for an average over the lab's 54 motes: each sends one partial state record an epoch. ``python -m bench.aggregation``

On links that lose nothing within their range, so that what is counted is what the protocol needs; repetitions after collisions are in.
"""

from __future__ import annotations

import argparse
from collections import Counter

from hil_tests.lab import positions
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry_protocol.packets import FOREVER, PacketType
from skerry_testbed.network import Environment, Field, Mote, Network, check
from skerry_testbed.pytest import NetworkHandle, disc

#: Network seconds until the tree stands, and until the query runs everywhere.
TREE_S, LEAD_S = 300, 60


def measure(period_s: int, epochs: int, range_m: float, seed: int) -> None:
    """One run, printed as a table."""
    motes = [Mote(id=n, x=x, y=y, root=n == 0) for n, (x, y) in positions().items()]
    field = Environment(fields={"temp": Field(base=20.0, noise=1.0)})
    net = NetworkHandle(
        check(Network(name="aggregation", seed=seed, mote=motes, radio=disc(range_m), environment=field))
    )
    net.advance("2.5s")
    net.line.connect()
    net.advance(TREE_S)
    plan = plan_query(f"SELECT AVG(temp) FROM sensors SAMPLE PERIOD {period_s} s")
    assert isinstance(plan, QueryPlan)
    start = (int(net.line.network_time()) + LEAD_S) // period_s * period_s + period_s
    net.line.install(1, encode(merge([plan]), start, FOREVER))
    net.advance(start - 1 - net.line.network_time())
    net.frames.clear()
    net.advance(epochs * period_s)
    sent: Counter[str] = Counter()
    for _, _, packet in net.packets():
        kind = packet.type.name if packet is not None else "unknown"
        if packet is not None and packet.type is PacketType.BUNDLE:
            kinds = {PacketType(record.type) for record in packet.body.records}
            kind = "PARTIAL" if PacketType.PARTIAL in kinds else "other records"
        sent[kind] += 1
    covered = Counter[int]()
    for record in net.line.of(PacketType.PARTIAL, 1):
        covered[record.body.epoch] += record.body.motes
    whole = [
        number
        for epoch, number in covered.items()
        if start <= epoch * period_s < start + (epochs - 1) * period_s
    ]
    others = len(motes) - 1
    print(f"range {range_m:g} m; {period_s} s; {epochs} epochs; seed {seed}")
    print("| frames a mote and epoch | |\n| --- | --- |")
    for kind, number in sent.most_common():
        print(f"| {kind} | {number / others / epochs:.2f} |")
    print(f"| all | {sum(sent.values()) / others / epochs:.2f} |")
    print(f"| motes in an epoch's average, mean of {others + 1} | {sum(whole) / max(1, len(whole)):.2f} |")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--period", type=int, default=30)
    parser.add_argument("--range", type=float, default=12.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    measure(options.period, options.epochs, options.range, options.seed)


if __name__ == "__main__":
    main()
