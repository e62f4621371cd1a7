"""Energy of sampling with and without exemplary aggregates pushed down: TinyDB 2005, 4.2.1, on the emulated IRIS.

``SELECT WINMAX(humidity, 8 s, 8 s) … WHERE light > 300``: light costs eleven times as much as humidity. Readings are drawn so
that the condition passes a given share of epochs, and humidity is drawn anew each epoch, or rises or falls through each
window (the worst and the best that can happen). Beside what is measured stands what the optimiser's model expects of readings
drawn alike. Rows are compared: they are the same. The seed is printed; virtual time makes the figures repeatable.
"""

from __future__ import annotations

import random

from bench.machine import table
from skerry.expressions.temporal import Parameters
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.condition_order import SamplingPlan, considered
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.physical.pushdown import changing
from skerry.planner.planner import plan_query
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.packets import PacketType
from skerry_testbed.network import Environment, Network, check
from skerry_testbed.pytest import NetworkHandle, disc, grid

SHARES = (0.1, 0.5, 0.9)
TRACES = ("drawn anew", "rising", "falling")
WINDOW, EPOCHS = 8, 200
SEED = 6
#: Readings that pass and do not pass the condition.
LIGHT = (600.0, 50.0)
QUERY = f"SELECT WINMAX(humidity, {WINDOW} s, {WINDOW} s) FROM sensors WHERE light > 300 SAMPLE PERIOD 1 s"
LIGHT_ENERGY, HUMIDITY_ENERGY = (BY_NAME[name].energy * 1e6 for name in ("light", "humidity"))


def humidity(trace: str, epoch: int, draw: random.Random) -> float:
    """The reading of an epoch, counted from the window's first."""
    place = epoch % WINDOW
    return {"drawn anew": draw.uniform(20, 80), "rising": 20.0 + 5 * place, "falling": 60.0 - 5 * place}[
        trace
    ]


def measured(plan: SamplingPlan, trace: str, share: float) -> tuple[float, list[bytes]]:
    """uJ that the sensors of one mote take for an epoch, and its rows."""
    draw = random.Random(SEED)
    motes = grid(1, 1, spacing=10)
    description = Network(name="pushdown", seed=SEED, mote=motes, radio=disc(15), environment=Environment())
    net = NetworkHandle(check(description))
    net.advance("2.5s")
    net.line.connect()
    net.advance("2s")
    asked = plan_query(QUERY)
    assert isinstance(asked, QueryPlan)
    start = int(net.line.network_time()) + 4
    net.line.install(1, encode(merge([asked]), start, start + EPOCHS, plan))
    net.advance(start - 0.5 - net.line.network_time())
    before = net.motes[0].energy["sensors_j"]
    told = set()  # windows in which some reading passes: of others there is no row
    for epoch in range(EPOCHS):
        passes, reading = draw.random() < share, humidity(trace, epoch, draw)
        if passes:
            told.add(epoch // WINDOW)
        net.motes[0].sense(humidity=reading, light=LIGHT[not passes])
        net.advance(1)
    energy = (net.motes[0].energy["sensors_j"] - before) / EPOCHS * 1e6
    net.advance(10)
    rows = [
        bytes([record.body.nulls, *record.body["values"]]) for record in net.line.of(PacketType.RESULT, 1)
    ]
    assert len(rows) == len(told), (len(rows), len(told))
    return energy, rows


def main() -> None:
    """Print the table."""
    asked = plan_query(QUERY)
    assert isinstance(asked, QueryPlan)
    plans = considered(merge([asked]))
    pushed = next(plan for plan in plans if plan.pushed)
    plain = next(plan for plan in plans if plan.staged and not plan.pushed)
    rows = []
    for share in SHARES:
        expected = (
            LIGHT_ENERGY + share * HUMIDITY_ENERGY,
            HUMIDITY_ENERGY + changing(Parameters(WINDOW, WINDOW, 0, 1000), share) * LIGHT_ENERGY,
        )
        for trace in TRACES:
            (without, rows_without), (with_it, rows_with) = (
                measured(one, trace, share) for one in (plain, pushed)
            )
            assert rows_without == rows_with
            model = f"model {expected[0]:.0f} and {expected[1]:.0f}" if trace == TRACES[0] else ""
            rows.append(
                (f"light passes {share:.0%}, humidity {trace}", f"light first {without:.0f}, pushed down {with_it:.0f} uJ",
                 f"{without / with_it:.1f}x less; {model}".rstrip("; "))
            )  # fmt: skip
    table(f"Exemplary aggregate pushed down, {EPOCHS} epochs each, seed {SEED}", rows)


if __name__ == "__main__":
    main()
