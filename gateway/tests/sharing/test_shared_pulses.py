"""The traffic mote's programs: motes send the richest that somebody asks for, and the gateway makes the others of it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.sharing.plans import kept, state_of
from skerry.ingest.ingest import Ingest
from skerry.ingest.pulses import Derivation
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query
from skerry.sharing.demand import Demand
from skerry.storage.log.record import Records
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Derived, Source, Stream
from skerry_protocol.codec import Packet, Series
from skerry_protocol.codes import PacketType

TEXTS = {
    "raw": "accel_x",
    "vehicles": "PULSE(accel_x > 0.3)",
    "counts": "PULSES(accel_x > 0.3, 1 s)",
    "slower": "PULSES(accel_x > 0.3, 2 s)",
    "heavy": "PULSE(accel_x > 0.8)",
}


def plan(name: str) -> QueryPlan:
    result = plan_query(f"SELECT nodeid, {TEXTS[name]} FROM sensors SAMPLE PERIOD 5 ms")
    assert isinstance(result, QueryPlan)
    return result


def own(name: str) -> MoteQuery:
    return merge([plan(name)])


def programs(demand: Demand) -> list[tuple[str, ...]]:
    """Columns of what motes run."""
    return [
        tuple(
            f"{c.aggregate.name} {c.name}" if c.aggregate else c.name for c in installation.mote_query.columns
        )
        for installation in demand.installations()
    ]


def reads(demand: Demand, user: str) -> list[tuple[int, bool]]:
    """Ends of the user's feeds, and whether the gateway makes their rows."""
    on_motes = {installation.query for installation in demand.installations()}
    return [(feed.since_ms, feed.query not in on_motes) for feed in demand.feeds(user)]


def test_motes_send_the_richest_that_is_asked_for() -> None:
    demand = Demand(lead_seconds=8)
    demand.add_user("a", plan("counts"), 100)
    assert programs(demand) == [("PULSES w0",)]
    demand.advance(120)
    demand.add_user("b", plan("vehicles"), 120)
    # Both for as long as rows of the first may be under way, then the one that serves both.
    assert programs(demand) == [("PULSES w0",), ("PULSE w0",)]
    demand.advance(139)
    assert programs(demand) == [("PULSE w0",)]
    assert [made for _, made in reads(demand, "a")][-1] is True
    assert [made for _, made in reads(demand, "b")] == [False]
    demand.add_user("c", plan("raw"), 140)
    demand.advance(160)
    assert programs(demand) == [("accel_x",)]
    assert [made for _, made in reads(demand, "b")][-1] is True
    demand.remove_user("c", 161)
    demand.advance(180)
    assert programs(demand) == [("PULSE w0",)]
    demand.remove_user("b", 181)
    demand.advance(200)
    assert programs(demand) == [("PULSES w0",)]
    assert [made for _, made in reads(demand, "a")][-1] is False
    demand.remove_user("a", 201)
    assert programs(demand) == []


def test_what_demand_knows_of_views_is_kept() -> None:
    demand = Demand(lead_seconds=8)
    plans = {name: plan(name) for name in ("raw", "counts", "heavy")}
    for name, wanted in plans.items():
        demand.add_user(name, wanted, 100)
    copy = kept(demand)
    assert state_of(copy) == state_of(demand)
    assert len(copy.views(copy.installations()[0].query)) == 2


def test_feeds_meet_at_the_cut_over() -> None:
    demand = Demand(lead_seconds=8)
    demand.add_user("a", plan("counts"), 100)
    demand.advance(120)
    demand.add_user("b", plan("raw"), 120)
    first, second = demand.feeds("a")
    assert first.until_ms == second.since_ms
    assert second.since_ms % 1000 == 0, "a window is whole"


readings = st.lists(st.sampled_from([0, 200, 301, 900, None]), min_size=1, max_size=400)


def derived(
    program: MoteQuery, view: MoteQuery, rows: list[tuple[int, tuple[Any, ...]]], step: int
) -> list[Any]:
    made = Derivation(program, view)
    found: list[Any] = []
    for i in range(0, len(rows), step):
        part = rows[i : i + step]
        whole = [part] if part[-1][0] - part[0][0] == len(part) - 1 else [[row] for row in part]
        for run in whole:
            found += made.take(7, run[0][0], [values for _, values in run])
            assert made.take(7, run[0][0], [run[0][1]]) == [], "repeated"
    return found + [row for node, row in made.complete(10**9) if node == 7]


PULSES = """
    SELECT max(epoch) + 1 AS epoch, count(*)::INTEGER AS length FROM (
      SELECT epoch, epoch - row_number() OVER (ORDER BY epoch) AS run FROM sensors WHERE accel_x > 300)
    GROUP BY run HAVING max(epoch) < (SELECT max(epoch) FROM sensors) ORDER BY 1"""


@settings(max_examples=60, deadline=None)
@given(readings, st.integers(1, 60), st.sampled_from(["counts", "slower"]))
def test_derived_rows_are_duckdbs(values: list[int | None], step: int, counted: str) -> None:
    sensors = pa.table(  # noqa: F841 duckdb finds it by its name
        {"epoch": range(20_000, 20_000 + len(values)), "accel_x": pa.array(values, pa.int64())}
    )
    pulses = duckdb.sql(PULSES).fetchall()
    raw = [(20_000 + i, (value,)) for i, value in enumerate(values)]
    assert derived(own("raw"), own("vehicles"), raw, step) == [(e, (length,)) for e, length in pulses]
    window = 200 if counted == "counts" else 400
    totals: dict[int, int] = {}
    for epoch, _ in pulses:
        last = epoch - epoch % window + window - 1
        totals[last] = totals.get(last, 0) + 1
    expected = [(last, (n,)) for last, n in sorted(totals.items())]
    assert derived(own("raw"), own(counted), raw, step) == expected
    vehicles = [(epoch, (length,)) for epoch, length in pulses]
    if vehicles:
        assert derived(own("vehicles"), own(counted), vehicles, 1) == expected


def series(epoch: int, values: list[int]) -> Packet:
    data = struct.pack(f"<{len(values)}h", *values)
    return Packet(PacketType.SERIES, Series(query=1, node=7, epoch=epoch, values=data))


class FullDisk(StreamLog):
    """Refuses to append while ``full``."""

    full = False

    def append(self, records: Records) -> None:
        if self.full:
            raise OSError("no space")
        super().append(records)


def test_ingest_makes_rows_of_rows(tmp_path: Path) -> None:
    raw, made = Stream(1, 1, 1, own("raw")), Stream(2, 1, 2, own("vehicles"))
    streams = {1: raw, 2: made}

    def views(stream: Stream) -> list[Derived]:
        return [Derived(made, 0, None)] if stream is raw else []

    log = FullDisk(tmp_path)
    ingest, source = Ingest(), Source(streams.get, lambda _: None, views=views)
    ingest.store([series(1000, [0, 400, 400])], source, log)
    log.full = True
    with pytest.raises(OSError, match="no space"):
        ingest.store([series(1003, [400, 0])], source, log)
    log.full = False
    ingest.store([series(1003, [400, 0, 400])], source, log)
    # The second pulse has begun when the gateway starts anew.
    again = Ingest()
    again.restore(log, streams, lambda _: source)
    again.store([series(1005, [400, 400, 0])], source, log)
    vehicles = [(int(r["epoch"]), int(r["value"][0])) for r in log.tail(100) if r["stream"] == 2]
    assert vehicles == [(1004, 3), (1007, 2)]
