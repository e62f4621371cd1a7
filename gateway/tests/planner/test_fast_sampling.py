"""Sample periods below a second, and pulses: what the motes' own code sends, compared with DuckDB over the same readings."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.tests.query import host
from firmware.tests.query.mote import COMPLETE, Mote
from skerry.ingest.ingest import Ingest
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry.streams.stream import Source, Stream
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codec import Packet, Series
from skerry_protocol.codes import PacketType

#: mg; None: the sensor failed.
readings = st.lists(st.sampled_from([0, 200, 301, 900, None]), min_size=1, max_size=120)


@pytest.fixture(scope="module")
def library() -> Path:
    return host.query_library()


def query_of(what: str, period: str = "5 ms") -> MoteQuery:
    plan = plan_query(f"SELECT {what} FROM sensors SAMPLE PERIOD {period}")
    assert isinstance(plan, QueryPlan)
    return merge([plan])


def on_mote(library: Path, query: MoteQuery, values: list[int | None], since: int = 20_000) -> list[Packet]:
    """The packets of a mote that reads these from epoch ``since`` on, one in each epoch."""
    mote = Mote(library)
    period_s = query.period_ms / 1000
    mote.sensor(BY_NAME["accel_x"].number, values[0])
    mote.synchronise(since * period_s - 1)
    assert mote.install(encode(query, int(since * period_s)), 1) == COMPLETE
    mote.run(1 - period_s / 2)
    packets = []
    for value in values:
        mote.sensor(BY_NAME["accel_x"].number, value)
        mote.run(period_s)
        packets += [Packet(record.type, record.body) for record in mote.records()]
    return packets


def rows_of(query: MoteQuery, packets: list[Packet]) -> list[tuple[Any, ...]]:
    """Epoch and values of each row, as the gateway takes them in."""
    ingest, source = Ingest(), Source(lambda _: Stream(1, 1, 1, query), lambda _: None)
    records = ingest.records(packets, source)
    assert ingest.counters.malformed == ingest.counters.unknown == 0
    return [
        (
            int(record["epoch"]),
            *(
                None if int(record["nulls"]) >> i & 1 else int(record["value"][i])
                for i in range(len(query.columns))
            ),
        )
        for record in records
    ]


def in_duckdb(select: str, values: list[int | None], since: int = 20_000) -> list[tuple[Any, ...]]:
    sensors = pa.table(  # noqa: F841 duckdb finds it by its name
        {"epoch": range(since, since + len(values)), "accel_x": pa.array(values, pa.int64())}
    )
    return duckdb.sql(select).fetchall()


#: Runs of readings above 300 mg that have ended: their last epoch's successor, and their length.
PULSES = """
    SELECT max(epoch) + 1 AS epoch, count(*) AS length FROM (
      SELECT epoch, epoch - row_number() OVER (ORDER BY epoch) AS run FROM sensors WHERE accel_x > 300)
    GROUP BY run HAVING max(epoch) < (SELECT max(epoch) FROM sensors)"""


@settings(max_examples=40, deadline=None)
@given(readings, st.sampled_from(["5 ms", "7 ms", "999 ms"]))
def test_every_reading_arrives_in_its_epoch(library: Path, values: list[int | None], period: str) -> None:
    query = query_of("accel_x", period)
    since = 7_000_000 // query.period_ms  # not all at a whole second
    since = -(-since * query.period_ms // 1000) * 1000 // query.period_ms
    found = rows_of(query, on_mote(library, query, values))
    first = found[0][0] if found else 0
    assert found == [(first + i, value) for i, value in enumerate(values[: len(found)])]
    assert len(values) - len(found) <= 1


@settings(max_examples=40, deadline=None)
@given(readings)
def test_a_pulse_gives_a_row_when_it_ends(library: Path, values: list[int | None]) -> None:
    query = query_of("PULSE(accel_x > 0.3)")
    assert rows_of(query, on_mote(library, query, values)) == in_duckdb(PULSES + " ORDER BY 1", values)


@settings(max_examples=40, deadline=None)
@given(readings, st.integers(1, 30))
def test_pulses_are_counted_in_windows_of_epochs(
    library: Path, values: list[int | None], window: int
) -> None:
    query = query_of(f"PULSES({window}, accel_x > 0.3)")
    expected = in_duckdb(
        f"SELECT epoch // {window} * {window} + {window - 1} AS last, count(*) FROM ({PULSES}) "
        "GROUP BY last HAVING last <= (SELECT max(epoch) FROM sensors) ORDER BY last",
        values,
    )
    assert rows_of(query, on_mote(library, query, values)) == expected


def test_of_two_pulses_the_one_that_did_not_end_is_null(library: Path) -> None:
    query = query_of("PULSE(accel_x > 0.3), PULSE(accel_x > 0.8)")
    packets = on_mote(library, query, [0, 400, 900, 900, 400, 0, 0])
    assert rows_of(query, packets) == [(20_004, None, 2), (20_005, 4, None)]


def test_rows_of_consecutive_epochs_travel_together(library: Path) -> None:
    query = query_of("accel_x")
    packets = on_mote(library, query, [100] * 3)
    assert {packet.type for packet in packets} == {PacketType.SERIES}


def test_a_series_whose_rows_have_another_width_is_refused() -> None:
    query = query_of("accel_x")
    ingest, source = Ingest(), Source(lambda _: Stream(1, 1, 1, query), lambda _: None)
    body = Series(query=1, node=3, epoch=5, values=struct.pack("<hhb", 1, 2, 3))
    assert len(ingest.records([Packet(PacketType.SERIES, body)], source)) == 0
    assert ingest.counters.malformed == 1
