"""Windows that the gateway makes of rows are those that a mote makes of the same readings."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.tests.query.mote import COMPLETE, Mote
from skerry.ingest.mote_windows import MoteWindows
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry_protocol import codec
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import PacketType

PERIOD_S = 2
NODE = 7
_KINDS = ("WINAVG", "WINSUM", "WINMIN", "WINMAX", "WINCOUNT", "TREND")
WHERE = ("", "WHERE light > 10", "WHERE temp < 15 OR light IS NULL")
SENSORS = ("temp", "light", "accel_x")


@st.composite
def over_rows(draw: st.DrawFn) -> str:
    slide = draw(st.integers(1, 3))
    kinds = st.lists(st.tuples(st.sampled_from(_KINDS), st.integers(1, 6)), min_size=1, max_size=3)
    windows = [f"{kind}({length}, {slide}, {draw(st.sampled_from(SENSORS))})" for kind, length in draw(kinds)]
    return f"SELECT temp, {', '.join(dict.fromkeys(windows))} FROM sensors {draw(st.sampled_from(WHERE))}"


@st.composite
def over_times(draw: st.DrawFn) -> str:
    slide = draw(st.integers(1, 4)) * PERIOD_S
    kinds = st.lists(st.tuples(st.sampled_from(_KINDS), st.integers(1, 5)), min_size=1, max_size=3)
    windows = [
        f"{kind}({draw(st.sampled_from(SENSORS))}, {length * PERIOD_S} s, {slide} s)"
        for kind, length in draw(kinds)
    ]
    where = draw(st.sampled_from(WHERE))
    beside = "temp" if not where else "level"
    return f"SELECT {beside}, {', '.join(dict.fromkeys(windows))} FROM sensors {where}"


others = st.sampled_from(
    [
        "SELECT temp, DELTA(2, light) FROM sensors",
        "SELECT ADPDELTA(1, light) FROM sensors WHERE temp > 5",
        "SELECT EXPAVG(2, temp), EXPAVG(5, light) FROM sensors WHERE light > 3",
        "SELECT PULSE(temp > 10), PULSE(light > 10) FROM sensors",
        "SELECT PULSES(4, temp > 10) FROM sensors",
        "SELECT DELTA(3, temp), DELTA(2, light) FROM sensors",
    ]
)
readings = st.lists(
    st.tuples(
        st.sampled_from([1, 1, 1, 1, 2, 3, 7]),  # epochs since the one before: others are missed
        st.tuples(*[st.none() | st.integers(-20, 40)] * len(SENSORS)),
    ),
    min_size=1,
    max_size=25,
)


def planned(text: str) -> QueryPlan:
    plan = plan_query(f"{text} SAMPLE PERIOD {PERIOD_S} s")
    assert isinstance(plan, QueryPlan)
    return plan


@pytest.mark.slow
@settings(max_examples=300)
@given(text=over_rows() | over_times() | others, taken=readings)
def test_the_gateway_makes_the_rows_that_a_mote_makes(
    query_library: Path, text: str, taken: list[tuple[int, tuple[int | None, ...]]]
) -> None:
    view = merge([planned(text)])
    program = merge([planned(f"SELECT level, {', '.join(SENSORS)} FROM sensors")])
    windows, mote = MoteWindows(view), Mote(query_library)
    mote.tree(1, 2)
    epoch = 50
    mote.synchronise(epoch * PERIOD_S + 1)
    assert mote.install(encode(view, 0), 1) == COMPLETE
    mote.run(0.5)
    made = []
    for passed, values in taken:
        epoch += passed
        for name, value in zip(SENSORS, values, strict=True):
            mote.sensor(BY_NAME[name].number, value)
        mote.synchronise(epoch * PERIOD_S - 0.5)
        mote.run(1.5)
        known = {**dict(zip(SENSORS, values, strict=True)), "level": 2}
        made += windows.take(program, NODE, epoch, [known[column.name] for column in program.columns])
    sent = [
        (record.body.epoch, _values(view, record.body))
        for record in mote.records()
        if record.type is PacketType.RESULT
    ]
    assert made == sent


def _values(view: MoteQuery, body: codec.Result) -> tuple[int | None, ...]:
    data, found = body.values, []
    for place, column in enumerate(view.columns):
        value = int.from_bytes(data[: column.format.size], "little", signed=column.format.minimum < 0)
        data = data[column.format.size :]
        found.append(None if body.nulls >> place & 1 else value)
    return tuple(found)
