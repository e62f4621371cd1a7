"""Energy of sampling by order of conditions, over a grid of selectivities: the paper's figure 6 on the emulated IRIS.

``SELECT light, temp WHERE temp > t AND light > l`` with readings drawn so that each condition passes a given share of
epochs. Light costs 290 uJ and temperature 76.5 uJ, as accelerometer and magnetometer differed in the paper. The seed is
printed; virtual time makes the figures repeatable.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from bench.machine import table
from skerry.expressions.assembler import assemble
from skerry.expressions.expression import conjuncts
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry_protocol.codec import decode_program, encode_program
from skerry_protocol.packets import QueryFlag
from skerry_testbed.network import Environment, Network, check
from skerry_testbed.pytest import NetworkHandle, disc, grid

SHARES = (0.1, 0.5, 0.9)
EPOCHS = 200
SEED = 6
#: Readings that pass and do not pass the conditions.
TEMP, LIGHT = (40.0, 10.0), (600.0, 50.0)
QUERY = "SELECT light, temp FROM sensors WHERE temp > 25 AND light > 300 SAMPLE PERIOD 1 s"


def program(order: Sequence[int] | None, start: int) -> bytes:
    """The query's program with its conditions in an order, 0 temp and 1 light; None: everything is read first."""
    plan = plan_query(QUERY)
    assert isinstance(plan, QueryPlan)
    query = merge([plan])
    fields = decode_program(encode(query, start))
    conditions = [assemble(condition) for condition in conjuncts(query.where)]
    assert query.where is not None
    where = (
        assemble(query.where)
        if order is None
        else b"".join(bytes([len(conditions[i])]) + conditions[i] for i in order)
    )
    return encode_program(
        flags=0 if order is None else int(QueryFlag.STAGED), period=fields.period, start=start, end=start + EPOCHS,
        where=where, fields=[{"format": f.format, "aggregate": f.aggregate, "code": f.code} for f in fields.fields],
    )  # fmt: skip


def measured(order: Sequence[int] | None, temp_share: float, light_share: float) -> float:
    """uJ that the sensors of one mote take for an epoch."""
    draw = random.Random(SEED)
    motes = grid(1, 1, spacing=10)
    description = Network(
        name="sampling order", seed=SEED, mote=motes, radio=disc(15), environment=Environment()
    )
    net = NetworkHandle(check(description))
    net.advance("2.5s")
    net.line.connect()
    net.advance("2s")
    start = int(net.line.network_time()) + 4
    net.line.install(1, program(order, start))
    net.advance(start - 0.5 - net.line.network_time())
    before = net.motes[0].energy["sensors_j"]
    for _ in range(EPOCHS):
        net.motes[0].sense(temp=TEMP[draw.random() >= temp_share], light=LIGHT[draw.random() >= light_share])
        net.advance(1)
    return (net.motes[0].energy["sensors_j"] - before) / EPOCHS * 1e6


def main() -> None:
    """Print the table."""
    names = {None: "all at once", (0, 1): "temp first", (1, 0): "light first"}
    rows = []
    for temp_share in SHARES:
        for light_share in SHARES:
            found = {order: measured(order, temp_share, light_share) for order in names}
            best = min(found, key=found.__getitem__)
            text = ", ".join(f"{names[order]} {energy:.0f}" for order, energy in found.items())
            rows.append(
                (f"temp passes {temp_share:.0%}, light {light_share:.0%}", f"{text} uJ", f"best: {names[best]}, "
                 f"{found[None] / found[best]:.1f}x less")
            )  # fmt: skip
    table(f"Sampling by order of conditions, {EPOCHS} epochs each, seed {SEED}", rows)


if __name__ == "__main__":
    main()
