"""Predicted against measured lifetime on a scaled battery: TinyDB 2005, figure 5. ``python -m bench.lifetime [--joules N]``

Emulated IRIS motes in a line run the paper's query on batteries of some joules for as many hours as give each mote the power that
two AA cells give for the paper's 24 weeks. Their voltage falls as their meters count; each mote reckons from it. Of a mote whose battery
is not empty when the time is over, the life is what its use comes to, as in the paper's linear fit.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from skerry.planner.model.lifetime_budget import CAPACITY, EMPTY, FULL
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry_protocol.packets import PacketType
from skerry_testbed.network import Environment, Field, Network, check
from skerry_testbed.pytest import MoteHandle, NetworkHandle, disc, line_of

SQL = "SELECT voltage, light FROM sensors"
#: What figure 5 was drawn for, and what its motes missed it by.
WEEKS, PAPER_ERROR = 24, 0.03
#: How often voltages follow the meters, in s.
STEP_S = 60


def joules(mote: MoteHandle) -> float:
    """All that a mote has taken since it started."""
    return sum(value for key, value in mote.energy.items() if key.endswith("_j"))


def measure(capacity: int, weeks: float, seed: int, motes: int) -> None:
    """One run, printed as a table."""
    length = round(weeks * 604_800 * capacity / CAPACITY)
    plan = plan_query(f"{SQL} LIFETIME {weeks:g} weeks")
    assert isinstance(plan, QueryPlan)
    assert plan.budget is not None
    query = merge([replace(plan, budget=replace(plan.budget, capacity=capacity))])
    field = Environment(fields={"light": Field(base=300.0)})
    net = NetworkHandle(
        check(
            Network(
                name="lifetime", seed=seed, mote=line_of(motes, spacing=10), radio=disc(12), environment=field
            )
        )
    )
    net.advance("2.5s")
    net.line.connect()
    net.advance("200s")
    start = int(net.line.network_time()) + 12
    net.line.install(1, encode(query, start, start + length))
    net.advance(start - net.line.network_time())
    before = {node: joules(mote) for node, mote in net.motes.items() if node}
    # A battery holds charge: what a mote takes at a lower voltage counts for as much more of the joules that it gave at the full one.
    used, volts = dict.fromkeys(before, 0.0), dict.fromkeys(before, FULL / 1000)
    lived: dict[int, float] = {}
    for second in range(STEP_S, length + STEP_S, STEP_S):
        net.advance(STEP_S)
        for node in before.keys() - lived.keys():
            total = joules(net.motes[node])
            taken = (total - before[node]) / volts[node] * FULL / 1000
            before[node] = total
            used[node] += taken
            left = 1 - used[node] / capacity
            if left <= 0:
                lived[node] = second - STEP_S * (used[node] - capacity) / taken
                net.motes[node].kill()
            else:
                volts[node] = (EMPTY + (FULL - EMPTY) * left) / 1000
                net.motes[node].sense(voltage=volts[node])
    print(
        f"network period {plan.period_ms / 1000:g} s; battery {capacity} J; requested {length / 3600:.3f} h; seed {seed}"
    )
    print("| mote | rows | battery used | lives, h | off by |\n| --- | --- | --- | --- | --- |")
    for node in sorted(before):
        rows = sum(record.body.node == node for record in net.line.of(PacketType.RESULT, 1))
        life = lived.get(node, length * capacity / used[node])
        print(
            f"| {node} | {rows} | {used[node] / capacity:.1%} | {life / 3600:.3f} | {life / length - 1:+.2%} |"
        )
    print(f"| the paper's | — | — | — | {PAPER_ERROR:.0%} |")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--joules", type=int, default=24, help="the scaled battery")
    parser.add_argument("--weeks", type=float, default=WEEKS, help="what it stands for")
    parser.add_argument("--motes", type=int, default=4, help="in a line, the root first")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    measure(options.joules, options.weeks, options.seed, options.motes)


if __name__ == "__main__":
    main()
