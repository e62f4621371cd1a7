"""Exemplary aggregates pushed down: the same rows from every plan, as DuckDB has them, and fewer sensors read."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firmware.tests.query import host
from firmware.tests.query.mote import COMPLETE, Mote, field, program
from skerry.expressions.expression import render
from skerry.expressions.temporal import Parameters
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.condition_order import SamplingPlan, considered
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import chosen, encode, program_size
from skerry.planner.physical.pushdown import changing
from skerry.planner.planner import plan_query
from skerry.service.explain import explain, explain_text
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import COLUMN_MAXIMUM, Op, instruction
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import PROGRAM_MAXIMUM

NAMES = ("light", "temp", "humidity")

values = {
    "light": st.none() | st.integers(0, 50) | st.integers(0, 40000),
    "temp": st.none() | st.integers(1990, 2010),
    "humidity": st.none() | st.integers(3000, 6000),
}
traces = st.lists(st.fixed_dictionaries(values), min_size=1, max_size=40)
conditions = st.lists(
    st.sampled_from(["temp > 20", "temp <= 20.03", "humidity > 40", "humidity < 55.5", "light > 10", "light < 30000"]),
    min_size=1, max_size=3, unique=True,
).map(" AND ".join)  # fmt: skip


@pytest.fixture(scope="module")
def library() -> Path:
    return host.query_library()


def plan_of(text: str) -> QueryPlan:
    plan = plan_query(text)
    assert isinstance(plan, QueryPlan)
    return plan


def on_mote(
    library: Path,
    query: MoteQuery,
    plan: SamplingPlan | None,
    trace: list[dict[str, int | None]],
    missed: frozenset[int] = frozenset(),
) -> tuple[list[tuple[int, ...]], dict[str, int]]:
    """The rows of the mote, from epoch 100 on, as they leave it; and how often each sensor was read."""
    mote = Mote(library)
    for name in NAMES:
        mote.sensor(BY_NAME[name].number, 0)
    mote.synchronise(99.5)
    assert mote.install(encode(query, 0, plan=plan), 1) == COMPLETE
    rows = []
    for second, readings in enumerate(trace, 100):
        if second in missed:
            mote.synchronise(second + 0.5)
            continue
        for name, value in readings.items():
            mote.sensor(BY_NAME[name].number, value)
        mote.run(1)
        rows += [(r.body.epoch, r.body.nulls, *r.body.values) for r in mote.records()]
    return rows, {name: mote.reads(BY_NAME[name].number) for name in NAMES}


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from(["WINMAX", "WINMIN"]), st.sampled_from(["light", "humidity", "light - 7"]), st.integers(1, 9)),
             min_size=1, max_size=3),
    st.integers(0, 4), conditions, traces, st.sets(st.integers(101, 139), max_size=4),
)  # fmt: skip
@example([("WINMAX", "light", 3)], 4, "light < 30000", [dict.fromkeys(NAMES)] * 9, {106})
@example(
    [("WINMAX", "light", 6)],
    3,
    "humidity > 40",
    [{"light": 9 - i, "temp": 2000, "humidity": 5000} for i in range(20)],
    {101, 108},
)
@example(
    [("WINMIN", "light", 4)],
    0,
    "humidity > 40",
    [{"light": 9 + i % 3, "temp": 2000, "humidity": 5000} for i in range(20)],
    {103, 107},
)
def test_every_plan_gives_the_same_rows(
    library: Path,
    windows: list[tuple[str, str, int]],
    rest: int,
    where: str,
    trace: list[dict[str, int | None]],
    missed: set[int],
) -> None:
    slide = max(length for _, _, length in windows) + rest
    columns = ", ".join(
        f"{kind}({of}, {length} s, {slide} s) AS w{i}" for i, (kind, of, length) in enumerate(windows)
    )
    query = merge([plan_of(f"SELECT {columns} FROM sensors WHERE {where} SAMPLE PERIOD 1 s")])
    plans = considered(query)
    assert {plan.pushed for plan in plans} == {False, True}
    plain = on_mote(library, query, next(p for p in plans if not p.staged), trace, frozenset(missed))[0]
    for plan in (*(p for p in plans if p.pushed), next(p for p in plans if p.staged and not p.pushed)):
        assert on_mote(library, query, plan, trace, frozenset(missed))[0] == plain, plan


@settings(max_examples=60)
@given(st.sampled_from(["WINMAX", "WINMIN"]), st.integers(1, 9), st.integers(0, 3), conditions, traces)
def test_rows_are_duckdbs(
    library: Path, kind: str, length: int, rest: int, where: str, trace: list[dict[str, int | None]]
) -> None:
    slide = length + rest
    text = f"SELECT {kind}(light, {length} s, {slide} s) FROM sensors WHERE {where} SAMPLE PERIOD 1 s"
    query = merge([plan_of(text)])
    scaled = {name: [None if row[name] is None else Decimal(row[name]).scaleb(-BY_NAME[name].digits) for row in trace]
              for name in NAMES}  # fmt: skip
    columns = {name: pa.array(column, pa.decimal128(12, 4)) for name, column in scaled.items()}
    sensors = pa.table({"epoch": range(100, 100 + len(trace)), **columns})  # noqa: F841 duckdb finds it by its name
    over = f"FILTER ({where}) OVER (ORDER BY epoch RANGE {length - 1} PRECEDING)"
    expected = duckdb.sql(
        f"SELECT epoch, {kind[3:]}(light) {over} FROM sensors "
        f"QUALIFY (epoch + 1) % {slide} = 0 AND epoch - {length - 1} >= 100 AND count(*) {over} > 0 "
        "ORDER BY epoch"
    ).fetchall()
    for plan in considered(query):
        rows = [
            (epoch, None if nulls else int.from_bytes(bytes(data), "little"))
            for epoch, nulls, *data in on_mote(library, query, plan, trace)[0]
        ]
        assert rows == [(epoch, None if value is None else int(value)) for epoch, value in expected], plan


def test_paper_example_is_pushed_down() -> None:
    """TinyDB 2005, 4.2.1, with a magnetometer that costs more than light saves by being asked last."""
    text = "SELECT WINMAX(accel_x, 8 s, 8 s) FROM sensors WHERE mag_x > -1900 SAMPLE PERIOD 1 s"
    query = merge([plan_of(text)])
    best = chosen(query)
    assert best.pushed
    assert [render(condition) for condition in best.conditions] == [
        "accel_x can change its WINMAX",
        "mag_x > -1900",
    ]
    accel, mag = BY_NAME["accel_x"].energy, BY_NAME["mag_x"].energy
    passing = 3900 / 4000
    assert best.energy == pytest.approx(accel + changing(Parameters(8, 8, 0, 1000), passing) * mag, rel=1e-3)
    (without,) = [p for p in considered(query) if p.staged and not p.pushed]
    assert without.energy == pytest.approx(mag + passing * accel, rel=1e-3)


def test_share_of_readings_that_change_a_window() -> None:
    """Against as many random windows, in which each reading is counted with the same probability."""
    draw = random.Random(4)
    for length, slide, passing in ((8, 8, 1.0), (8, 8, 0.5), (5, 9, 0.2), (1, 1, 0.7), (64, 64, 0.9)):
        changed, windows = 0, 4000
        for _ in range(windows):
            best = -1.0
            for _ in range(length):
                reading = draw.random()
                if reading > best:
                    changed += 1
                    if draw.random() < passing:
                        best = reading
        measured = changed / windows / slide
        assert changing(Parameters(length, slide, 0, 1000), passing) == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT WINMAX(8, 8, light) FROM sensors WHERE temp > 20 SAMPLE PERIOD 1 s",
        "SELECT WINMAX(light, 8 s, 4 s) FROM sensors WHERE temp > 20 SAMPLE PERIOD 1 s",
        "SELECT WINAVG(light, 8 s, 8 s) FROM sensors WHERE temp > 20 SAMPLE PERIOD 1 s",
        "SELECT WINMAX(light, 8 s, 8 s), WINCOUNT(light, 8 s, 8 s) FROM sensors WHERE temp > 20 SAMPLE PERIOD 1 s",
        "SELECT MAX(light) FROM sensors WHERE temp > 20 SAMPLE PERIOD 1 s",
        "SELECT WINMAX(light, 8 s, 8 s) FROM sensors SAMPLE PERIOD 1 s",
    ],
)
def test_what_needs_each_row_is_not_pushed_down(text: str) -> None:
    query = merge([plan_of(text)])
    assert not any(plan.pushed for plan in considered(query))


def test_mote_leaves_out_what_cannot_matter(library: Path) -> None:
    query = merge(
        [plan_of("SELECT WINMAX(humidity, 8 s, 8 s) FROM sensors WHERE light < 65000 SAMPLE PERIOD 1 s")]
    )
    assert chosen(query).pushed
    falling = [{"light": 100, "temp": 2000, "humidity": 6000 - 100 * i} for i in range(20)]
    rows, read = on_mote(library, query, None, falling)
    # Epochs 104 to 111, and 112 to 119; of what comes before them there is no row.
    assert [epoch for epoch, *_ in rows] == [111, 119]
    assert (read["humidity"], read["light"]) == (20, 3)


@pytest.mark.parametrize("column", range(COLUMN_MAXIMUM + 1))
def test_of_what_is_no_window_nothing_is_known(library: Path, column: int) -> None:
    """Such a program comes from no gateway: its condition is NULL, and no row passes."""
    mote = Mote(library)
    mote.sensor(BY_NAME["light"].number, 5)
    mote.synchronise(99.5)
    light = instruction(Op.ATTR, BY_NAME["light"].number)
    fields = [
        field(ValueFormat.U16, light),
        field(ValueFormat.U16, bytes([8, 8, 0]) + light, Aggregate.DELTA),
    ]
    asks = light + instruction(Op.CHANGES, column)
    is_window = column == 1  # a DELTA: it may always change
    assert mote.install(program(fields, where=asks + instruction(Op.IS_NULL)), 1) == COMPLETE
    assert mote.install(program(fields[:1], where=asks), 2) == COMPLETE
    mote.run(3)
    assert {record.body.query for record in mote.records()} == (set() if is_window else {1})


def test_a_program_that_would_be_too_long_is_not_pushed_down() -> None:
    """The condition more takes 5 bytes: there is a length of WHERE for which only the query's own conditions fit."""
    left_out = 0
    for count in range(20, 50):
        where = " AND ".join(["mag_x > -1999", *(f"room <> {n}" for n in range(count))])
        text = f"SELECT WINMAX(accel_x, 8 s, 8 s) FROM sensors WHERE {where} SAMPLE PERIOD 1 s"
        try:
            query = merge([plan_of(text)])
        except QueryError as error:
            assert "too large" in error.message  # noqa: PT017
            break
        assert considered(query)[0].pushed
        assert program_size(query) <= PROGRAM_MAXIMUM
        left_out += not chosen(query).pushed
        assert chosen(query).pushed == (program_size(query, considered(query)[0]) <= PROGRAM_MAXIMUM)
    assert left_out > 0


def test_explain_shows_it() -> None:
    plan = plan_of("SELECT WINMAX(accel_x, 8 s, 8 s) FROM sensors WHERE mag_x > -1900 SAMPLE PERIOD 1 s")
    shown = explain(plan)
    assert [one["pushed_down"] for one in shown["motes"]["sampling"]].count(True) >= 1
    assert shown["motes"]["sampling"][0]["pushed_down"]
    assert "accel_x can change its WINMAX, then mag_x > -1900" in explain_text(shown)
