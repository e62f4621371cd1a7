"""Partial states that siblings make superfluous are not sent, and the answers stay what they are."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace

import pytest

from skerry.expressions.aggregate_states import ranking
from skerry.ingest.partial_states import Partial, from_packet, merge_partials
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry_protocol.codes import Aggregate, PacketType
from skerry_protocol.limits import FOREVER
from skerry_testbed.network import Environment, Field, Mote
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc

PERIOD_S = 5
STILL = Environment(fields={"light": Field(base=100.0)})
#: Epochs behind the last one that is looked at, for what has to be sent again.
DRAIN = 3


def two_levels(near: int, far: int, boards: tuple[str, ...]) -> list[Mote]:
    """Within a range of 30 m: root 0, motes that hear it and each other, and motes beyond that hear these and each other."""
    places = [(0.0, 0.0)] + [(18.0 + i % 4, 0.5 * i) for i in range(near)]
    places += [(36.0 + i % 4, 0.5 * i) for i in range(far)]
    return [
        Mote(id=n, x=x, y=y, root=n == 0, board=boards[n % len(boards)]) for n, (x, y) in enumerate(places)
    ]


def install(net: NetworkHandle, number: int, sql: str, start: int, snoop: bool) -> MoteQuery:
    plan = plan_query(sql)
    assert isinstance(plan, QueryPlan)
    query = merge([plan])
    assert query.snoop
    query = replace(query, snoop=snoop)
    net.line.install(number, encode(query, start, FOREVER))
    return query


def run(
    net: NetworkHandle, epochs: int, seed: int, snoop: bool, **queries: str
) -> tuple[dict[str, MoteQuery], dict[int, dict[int, int]], int]:
    """The mote queries, numbered from 1, readings (whole degC) by epoch and mote, and frames with partial states."""
    net.advance("40s")
    first = int(net.line.network_time()) // PERIOD_S + 16
    installed = {
        name: install(net, number, sql, first * PERIOD_S, snoop)
        for number, (name, sql) in enumerate(queries.items(), 1)
    }
    net.advance((first - 0.5) * PERIOD_S - net.line.network_time())
    net.frames.clear()
    rng = random.Random(seed)
    readings: dict[int, dict[int, int]] = {}
    for epoch in range(first, first + epochs + DRAIN):
        readings[epoch] = {node: rng.randrange(10, 40) for node in net.motes}
        for node, value in readings[epoch].items():
            net.motes[node].sense(temp=value)
        net.advance(PERIOD_S)
    for epoch in range(first + epochs, first + epochs + DRAIN):
        del readings[epoch]
    sent = sum(
        any(record.type == PacketType.PARTIAL for record in packet.body.records)
        for _, _, packet in net.packets()
        if packet.type is PacketType.BUNDLE
    )
    return installed, readings, sent


def answers(net: NetworkHandle, number: int, query: MoteQuery) -> dict[int, dict[tuple[int | None, ...], Partial]]:  # fmt: skip
    """Merged states by epoch and group."""
    parts: dict[int, dict[tuple[int | None, ...], list[Partial]]] = defaultdict(lambda: defaultdict(list))
    for record in net.line.of(PacketType.PARTIAL, number):
        partial = from_packet(query, record.body)
        group = partial.group(query)
        if group is not None:
            parts[partial.epoch][group].append(partial)
    return {
        epoch: {group: merge_partials(query, states) for group, states in groups.items()}
        for epoch, groups in parts.items()
    }


def degrees(partial: Partial, kind: Aggregate, query: MoteQuery) -> int:
    index = next(i for i, column in enumerate(query.columns) if column.aggregate is kind)
    value = partial.states[index][1]
    assert value is not None
    return round(value / 100)


BOARDS = [("iris",), ("cc2538",), ("iris", "cc2538")]


@pytest.mark.parametrize("reception", [1.0, 0.75])
@pytest.mark.parametrize("boards", BOARDS, ids="+".join)
@pytest.mark.parametrize("seed", [1, 2])
def test_answers_are_exact(
    network: MakeNetwork, boards: tuple[str, ...], reception: float, seed: int
) -> None:
    """MAX, MIN in groups and the three best, with ties, over two levels and whatever is lost."""
    motes = two_levels(9, 6, boards)
    net = network(motes, radio=disc(30, reception), environment=STILL, seed=seed)
    queries, readings, _ = run(
        net, 20, seed, True,
        most=f"SELECT MAX(temp) FROM sensors SAMPLE PERIOD {PERIOD_S} s",
        least=f"SELECT nodeid % 2 AS half, MIN(temp) FROM sensors GROUP BY nodeid % 2 SAMPLE PERIOD {PERIOD_S} s",
        best=f"SELECT TOP(3, temp) FROM sensors SAMPLE PERIOD {PERIOD_S} s",
    )  # fmt: skip
    most, least, best = (answers(net, n, query) for n, query in enumerate(queries.values(), 1))
    for epoch, values in readings.items():
        assert degrees(most[epoch][()], Aggregate.MAX, queries["most"]) == max(values.values())
        for half in (0, 1):
            own = min(value for node, value in values.items() if node % 2 == half)
            assert degrees(least[epoch][(half,)], Aggregate.MIN, queries["least"]) == own
        first = sorted(values.items(), key=lambda item: (-item[1], item[0]))[:3]
        found = [round(value / 100) for _, value in ranking(best[epoch][()].states)]
        assert found == [value for _, value in first]


def test_fewer_frames_in_a_dense_cell(network: MakeNetwork) -> None:
    sql = f"SELECT MAX(temp) FROM sensors SAMPLE PERIOD {PERIOD_S} s"
    sent = [
        run(network(two_levels(24, 0, ("iris",)), radio=disc(30), environment=STILL, seed=3), 15, 3, snoop, most=sql)[2]
        for snoop in (False, True)
    ]  # fmt: skip
    assert sent[1] < 0.45 * sent[0]


def test_readings_of_other_groups_do_not_count(network: MakeNetwork) -> None:
    """Each mote is a group of its own: all are sent."""
    motes = two_levels(8, 0, ("iris",))
    net = network(motes, radio=disc(30), environment=STILL, seed=4)
    sql = f"SELECT nodeid, MAX(temp) FROM sensors GROUP BY nodeid SAMPLE PERIOD {PERIOD_S} s"
    queries, readings, _ = run(net, 10, 4, True, most=sql)
    found = answers(net, 1, queries["most"])
    for epoch, values in readings.items():
        assert {group[0]: degrees(part, Aggregate.MAX, queries["most"]) for group, part in found[epoch].items()} == values  # fmt: skip
