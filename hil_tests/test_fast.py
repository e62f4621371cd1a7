"""Sample periods of milliseconds on emulated motes: every sample arrives, and pulses are those of the samples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from hil_tests.slots import until_switched
from skerry.ingest.ingest import Ingest
from skerry.planner.model.plans import Difference, Feed, QueryPlan
from skerry.planner.planner import plan_query
from skerry.sharing.demand import Demand
from skerry.streams.stream import Derived, Source, Stream
from skerry_protocol.codes import PacketType
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, line_of
from skerry_testbed.queries import ask, rows

#: A vehicle each 0.7 s, or what looks like one to a mote.
SHAKEN = Environment(fields={"accel_x": Field(base=0.0, amplitude=1.0, period="690 ms")}, update="10 ms")
PULSES = """
    SELECT max(epoch) + 1 AS epoch, count(*) AS length FROM (
      SELECT epoch, epoch - row_number() OVER (ORDER BY epoch) AS run FROM samples WHERE accel_x > 0.3)
    GROUP BY run HAVING max(epoch) < (SELECT max(epoch) FROM samples) ORDER BY 1"""


def of_mote(found: list[dict[str, Any]], column: str) -> list[tuple[int, Any]]:
    return sorted((row["epoch"], row[column]) for row in found if row["nodeid"] == 1)


@pytest.mark.parametrize("board", ["iris", "cc2538"])
def test_each_sample_arrives_and_pulses_are_those_of_the_samples(network: MakeNetwork, board: str) -> None:
    net = network(line_of(2, spacing=10, boards=[board]), radio=disc(12), environment=SHAKEN)
    net.advance("60s")
    asked = {
        name: ask(net, query, f"SELECT {what} FROM sensors WHERE nodeid = 1 SAMPLE PERIOD 5 ms", end=90)
        for query, (name, what) in enumerate(
            {"accel_x": "accel_x", "length": "PULSE(accel_x > 0.3)", "count": "PULSES(accel_x > 0.3, 1 s)"}.items(), 1
        )
    }  # fmt: skip
    net.advance("50s")
    sampled = of_mote(rows(net.line, 1, asked["accel_x"]), "accel_x")
    epochs = [epoch for epoch, _ in sampled]
    assert epochs == list(range(epochs[0], 90 * 200)), "each epoch once"
    samples = pa.table({"epoch": epochs, "accel_x": [value for _, value in sampled]})  # noqa: F841 for duckdb
    ended = duckdb.sql(PULSES)
    pulses = ended.fetchall()
    assert len(pulses) > 20
    assert of_mote(rows(net.line, 2, asked["length"]), "w0") == pulses
    counts = duckdb.sql("SELECT epoch // 200 * 200 + 199 AS last, count(*) FROM ended GROUP BY 1 ORDER BY 1")
    assert counts is not None
    assert of_mote(rows(net.line, 3, asked["count"]), "w0") == counts.fetchall()
    assert net.motes[1].counters["crashes"] == 0


def test_each_sample_arrives_when_the_slots_have_followed_the_network(network: MakeNetwork) -> None:
    """What a mote sends in a second takes more than a slot for one frame of each."""
    net = network(line_of(2, spacing=10), radio=disc(12), environment=SHAKEN)
    net.advance("60s")
    query = ask(net, 1, "SELECT accel_x FROM sensors WHERE nodeid = 1 SAMPLE PERIOD 5 ms")
    net.advance("10s")
    until_switched(net, 600)
    net.advance("60s")
    epochs = [epoch for epoch, _ in of_mote(rows(net.line, 1, query), "accel_x")]
    assert epochs == list(range(epochs[0], epochs[-1] + 1)), "each epoch once"
    assert epochs[-1] > (net.line.network_time() - 3) * 200


class Gateway:
    """What a gateway does of demand and rows, in virtual time."""

    def __init__(self, net: NetworkHandle) -> None:
        self.net, self.demand = net, Demand()
        self.streams: dict[int, Stream] = {}
        self.ingest = Ingest()
        self.source = Source(self.streams.get, lambda _: None, views=self.views)
        self.rows: list[tuple[int, int, int]] = []
        self.taken = 0

    def views(self, stream: Stream) -> list[Derived]:
        return [
            Derived(self.streams[made.query], since_ms, until_ms)
            for made, since_ms, until_ms in self.demand.views(stream.query)
        ]

    def adopt(self, difference: Difference) -> None:
        for query in difference.stop:
            self.net.line.stop(query)
        for installation in difference.install:
            self.net.line.install(installation.query, installation.program)
        for installed in self.demand.installations():
            for one in (installed, *(made for made, _, _ in self.demand.views(installed.query))):
                self.streams.setdefault(one.query, Stream(one.query, 1, one.query, one.mote_query))

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.net.advance(1)
            self.adopt(self.demand.advance(self.net.line.network_time()))
            heard = [record.packet for record in self.net.line.records[self.taken :]]
            self.taken += len(heard)
            known = [
                p for p in heard if p.type in (PacketType.RESULT, PacketType.SERIES) and p.body.query != TRUTH
            ]
            self.rows += [
                (int(r["stream"]), int(r["epoch"]), int(r["value"][0]))
                for r in self.ingest.records(known, self.source)
                if r["node"] == 1
            ]

    def of(self, feeds: Iterable[Feed]) -> list[tuple[int, int]]:
        """Epochs and values of the rows in these feeds."""
        return sorted(
            (epoch, value)
            for stream, epoch, value in self.rows
            for feed in feeds
            if feed.query == stream and feed.passes(epoch * feed.stream_period_ms)
        )


TRUTH = 200


def test_programs_follow_the_users_and_no_pulse_is_lost_or_doubled(network: MakeNetwork) -> None:
    """Fjords 2001, section 6: counts, then vehicles as well, then samples as well, and back."""
    net = network(line_of(2, spacing=10), radio=disc(12), environment=SHAKEN)
    net.advance("60s")
    truth = ask(net, TRUTH, "SELECT accel_x FROM sensors WHERE nodeid = 1 SAMPLE PERIOD 5 ms")
    gateway = Gateway(net)
    texts = {"counts": "PULSES(accel_x > 0.3, 1 s)", "vehicles": "PULSE(accel_x > 0.3)", "raw": "accel_x"}
    plans = {}
    for name, what in texts.items():
        plan = plan_query(f"SELECT {what} FROM sensors WHERE nodeid = 1 SAMPLE PERIOD 5 ms")
        assert isinstance(plan, QueryPlan)
        plans[name] = plan
    for name in texts:
        gateway.adopt(gateway.demand.add_user(name, plans[name], net.line.network_time()))
        gateway.run(24)
    gateway.adopt(gateway.demand.remove_user("raw", net.line.network_time()))
    gateway.run(24)
    vehicles = gateway.of(gateway.demand.feeds("vehicles"))
    gateway.adopt(gateway.demand.remove_user("vehicles", net.line.network_time()))
    gateway.run(30)
    sampled = of_mote(rows(net.line, TRUTH, truth), "accel_x")
    samples = pa.table({"epoch": [e for e, _ in sampled], "accel_x": [value for _, value in sampled]})  # noqa: F841 for duckdb
    ended = duckdb.sql(PULSES)
    counts = gateway.of(gateway.demand.feeds("counts"))
    assert len(gateway.demand.feeds("counts")) == 5
    expected = duckdb.sql(
        "SELECT epoch // 200 * 200 + 199 AS last, count(*) FROM ended GROUP BY 1 ORDER BY 1"
    ).fetchall()
    # The first window of the samples may begin within a pulse.
    first, last = sampled[0][0] + 400, counts[-1][0]
    assert last - first > 90 * 200
    assert [row for row in counts if row[0] >= first] == [row for row in expected if first <= row[0] <= last]
    assert vehicles == [
        (epoch, length) for epoch, length in ended.fetchall() if vehicles[0][0] <= epoch <= vehicles[-1][0]
    ]
