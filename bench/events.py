"""What a query costs that waits for events, beside one that runs all the time: TinyDB 2005, figure 7. ``python -m bench.events``

Four emulated IRIS motes in a line; events come at a rate, and after each the motes sample light for some seconds. The paper models the
sensors and the CPU; here all that a mote takes is measured, radio included.
"""

from __future__ import annotations

import argparse

from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry_protocol.commands import event_number
from skerry_protocol.packets import BROADCAST, FOREVER, CommandOp, Event
from skerry_testbed.network import Environment, Field, Network, check
from skerry_testbed.pytest import NetworkHandle, disc, line_of

SAMPLES = "SELECT light FROM sensors SAMPLE PERIOD 1 s"
MEASURED_S, WARM_S = 1200, 300


def power(sql: str, every_s: float | None, seed: int) -> tuple[float, float]:
    """Mean of the three motes behind the root in mW, and what of it the sensors take, while an event comes each so many s."""
    field = Environment(fields={"light": Field(base=300.0)})
    net = NetworkHandle(
        check(
            Network(name="events", seed=seed, mote=line_of(4, spacing=10), radio=disc(12), environment=field)
        )
    )
    net.advance("2.5s")
    net.line.connect()
    net.advance("20s")
    plan = plan_query(sql)
    assert isinstance(plan, QueryPlan)
    net.line.install(1, encode(merge([plan]), int(net.line.network_time()) + 10, FOREVER))
    net.advance(WARM_S)

    def taken() -> tuple[float, float]:
        meters = [mote.energy for node, mote in net.motes.items() if node]
        return sum(v for m in meters for k, v in m.items() if k.endswith("_j")), sum(
            m["sensors_j"] for m in meters
        )

    before = taken()
    end = net.now + MEASURED_S
    token = 1
    while net.now < end:
        if every_s is not None:
            seconds = int(net.line.network_time())
            event = Event.build(
                {"event": event_number("look"), "node": 0, "x": 0, "y": 0, "seconds": seconds, "value": 0}
            )
            net.line.command(BROADCAST, CommandOp.EVENT, bytes(event), token)
            token += 1
        net.advance(min(every_s or MEASURED_S, end - net.now))
    total, sensors = (after - first for after, first in zip(taken(), before, strict=True))
    return total / MEASURED_S / 3 * 1e3, sensors / MEASURED_S / 3 * 1e3


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    always = power(SAMPLES, None, options.seed)
    table = [
        "| an event each | for 3 s: mW | sensors | for 10 s: mW | sensors |",
        "| --- | --- | --- | --- | --- |",
    ]
    for every in (None, 600, 120, 60, 30, 15):
        cells = [power(f"ON EVENT look {SAMPLES} FOR {lasts} s", every, options.seed) for lasts in (3, 10)]
        name = f"{every} s" if every else "none comes"
        columns = " | ".join(f"{total:.2f} | {sensors:.2f}" for total, sensors in cells)
        table.append(f"| {name} | {columns} |")
    table.append(f"| runs all the time | {always[0]:.2f} | {always[1]:.2f} | | |")
    print("\n".join(table))


if __name__ == "__main__":
    main()
