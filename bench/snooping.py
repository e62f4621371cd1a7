"""MAX and AVG in a dense cell, with snooping (TinyDB 2005, 6.3.2) and without: frames, what the radio takes. ``python -m bench.snooping``

All motes hear each other and the root. The answer of each epoch is compared with the readings, which are drawn anew for each
(``drawn``), or stay what they are but for noise (``places``): motes know better then whom to listen to. In a ``room`` they
differ by little, and drift together.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from dataclasses import dataclass, replace

from skerry.ingest.partial_states import Partial, from_packet, merge_partials
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry_protocol.packets import FOREVER, Aggregate, PacketType
from skerry_testbed.network import Environment, Field, Mote, Network, check
from skerry_testbed.pytest import NetworkHandle, disc

#: Network seconds until the tree stands, and until the query runs everywhere.
TREE_S, LEAD_S = 240, 60
MAX = "MAX(temp) FROM sensors SAMPLE PERIOD {} s"
AVG = "AVG(temp) FROM sensors SAMPLE PERIOD {} s"
#: degC: half of what readings are given in.
RIGHT = 0.05
RADIO = ("radio_rx", "radio_tx", "radio_idle", "radio_off")


@dataclass
class Outcome:
    """Of one run, per mote and epoch."""

    frames: float
    radio_ms: float
    radio_uj: float
    errors: list[float]
    epochs: int


def temperatures(kind: str, motes: int, epoch: int, seed: int) -> list[float]:
    """degC of each mote in an epoch, multiples of 0.1."""
    noise = random.Random(f"{seed} {epoch}")
    places = random.Random(seed)
    if kind == "drawn":
        return [noise.randrange(100, 400) / 10 for _ in range(motes)]
    if kind == "room":
        drift = 200 + 2 * epoch % 50
        return [(drift + places.randrange(-5, 6) + noise.randrange(-2, 3)) / 10 for _ in range(motes)]
    return [places.randrange(150, 250) / 10 + noise.randrange(-2, 3) / 10 for _ in range(motes)]


def measure(kind: str, what: str, snoop: bool, motes: int, period_s: int, epochs: int, seed: int) -> Outcome:
    """One run."""
    rng = random.Random(seed)
    cell = [
        Mote(id=n, x=rng.uniform(0, 10), y=rng.uniform(0, 10), root=n == 0) for n in range(motes)
    ]  # fmt: skip
    field = Environment(fields={"humidity": Field(base=50.0)})
    net = NetworkHandle(
        check(Network(name="snooping", seed=seed, mote=cell, radio=disc(30), environment=field))
    )
    net.advance("2.5s")
    net.line.connect()
    net.advance(TREE_S)
    plan = plan_query(f"SELECT {what.format(period_s)}")
    assert isinstance(plan, QueryPlan)
    query = merge([plan])
    query = query if query.snoop == snoop else replace(query, snoop=snoop)
    average = query.columns[0].aggregate is Aggregate.AVG
    first = (int(net.line.network_time()) + LEAD_S) // period_s + 1
    net.line.install(1, encode(query, first * period_s, FOREVER))
    net.advance(first * period_s - period_s / 2 - net.line.network_time())
    others = [mote for number, mote in net.motes.items() if number]
    before = [mote.energy for mote in others]
    net.frames.clear()
    expected = {}
    for epoch in range(first, first + epochs):
        values = temperatures(kind, motes, epoch, seed)
        for mote, value in zip(net.motes.values(), values, strict=True):
            mote.sense(temp=value)
        expected[epoch] = sum(values) / len(values) if average else max(values)
        net.advance(period_s)
    after = [mote.energy for mote in others]
    sent: Counter[str] = Counter()
    for _, _, packet in net.packets():
        if packet.type is PacketType.BUNDLE:
            sent.update({PacketType(record.type).name for record in packet.body.records})
    parts: dict[int, list[Partial]] = {}
    for record in net.line.of(PacketType.PARTIAL, 1):
        partial = from_packet(query, record.body)
        parts.setdefault(partial.epoch, []).append(partial)
    errors = []
    for epoch, value in expected.items():
        count, total = merge_partials(query, parts[epoch]).states[0]
        errors.append(abs((total or 0) / (count if average else 1) / 100 - value))
    share = len(others) * epochs
    seconds, joule = (
        sum(a[f"{part}_{unit}"] - b[f"{part}_{unit}"] for a, b in zip(after, before, strict=True) for part in RADIO)
        for unit in ("s", "j")
    )  # fmt: skip
    return Outcome(sent["PARTIAL"] / share, seconds / share * 1e3, joule / share * 1e6, errors, epochs)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--motes", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--period", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{options.motes} motes, {options.period} s, {options.epochs} epochs, seed {options.seed}")
    size = (options.motes, options.period, options.epochs, options.seed)
    print("| readings | snooping | frames a mote and epoch | radio on, ms | radio, uJ | right answers |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in ("drawn", "places"):
        for snoop in (False, True):
            found = measure(kind, MAX, snoop, *size)
            right = sum(error < RIGHT for error in found.errors)
            print(
                f"| {kind} | {'yes' if snoop else 'no'} | {found.frames:.2f} | {found.radio_ms:.1f} | {found.radio_uj:.0f} "
                f"| {right} of {found.epochs} |",
                flush=True,
            )
    print()
    print(
        "| readings | within, degC | frames a mote and epoch | radio on, ms | radio, uJ | largest error, degC |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in ("drawn", "places", "room"):
        for within in ("", " APPROXIMATE WITHIN 1 degC"):
            found = measure(kind, AVG + within, bool(within), *size)
            print(
                f"| {kind} | {within[20:-5] or 'exact'} | {found.frames:.2f} | {found.radio_ms:.1f} | {found.radio_uj:.0f} "
                f"| {max(found.errors):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
