"""Temporal aggregates: computed by the motes' own code, compared with DuckDB's windows over the same readings."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firmware.tests.query import host
from firmware.tests.query.mote import COMPLETE, Mote
from skerry.execution.residual import Residual, Rows
from skerry.expressions.expression import render
from skerry.expressions.temporal import Parameters, parameters
from skerry.planner.model.plans import Feed, MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry.sql.errors import QueryError
from skerry_protocol.attributes import BY_NAME

#: Hundredths of a degree; None: the sensor failed.
readings = st.lists(st.none() | st.integers(-4000, 12500) | st.integers(2000, 2050), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def library() -> Path:
    return host.query_library()


def plan(what: str, rest: str = "") -> QueryPlan:
    result = plan_query(f"SELECT {what} FROM sensors {rest} SAMPLE PERIOD 1 s")
    assert isinstance(result, QueryPlan)
    return result


def on_mote(
    library: Path, wanted: QueryPlan, temps: list[int | None], missed: frozenset[int] = frozenset()
) -> list[dict[str, Any]]:
    """The user's rows when the mote reads these, one a second, from epoch 100 on; the clock steps over the ``missed`` ones."""
    query = merge([wanted])
    mote = Mote(library)
    mote.synchronise(99.5)
    assert mote.install(encode(query, 0), 1) == COMPLETE
    rows = []
    for second, temp in enumerate(temps, 100):
        if second in missed:
            mote.synchronise(second + 0.5)
            continue
        mote.sensor(BY_NAME["temp"].number, temp)
        mote.run(1)
        for record in mote.records():
            values, offset = {"nodeid": 7, "epoch": record.body.epoch}, 0
            for i, column in enumerate(query.columns):
                data = record.body.values[offset : offset + column.format.size]
                offset += column.format.size
                value = int.from_bytes(data, "little", signed=column.format.minimum < 0)
                values[column.name] = None if record.body.nulls >> i & 1 else value
            rows.append(values)
    names = ["nodeid", "epoch", *(column.name for column in query.columns)]
    batch = Rows(
        pa.RecordBatch.from_pydict({n: pa.array([r[n] for r in rows], pa.int64()) for n in names}), query
    )
    residual = Residual(wanted)
    chosen = residual.select(batch, Feed("u", 1, 1000, 1000, 0))
    found: list[dict[str, Any]] = residual.project(batch, chosen).to_pylist()
    return found


def in_duckdb(select: str, temps: list[int | None]) -> list[tuple[Any, ...]]:
    """``select`` over the same readings as exact decimals."""
    values = [None if t is None else Decimal(t) / 100 for t in temps]
    sensors = pa.table(  # noqa: F841 duckdb finds it by its name
        {"epoch": range(100, 100 + len(temps)), "temp": pa.array(values, pa.decimal128(9, 2))}
    )
    return duckdb.sql(select).fetchall()


@settings(max_examples=40)
@given(readings, st.integers(1, 12), st.integers(1, 5))
def test_windows_are_duckdbs(library: Path, temps: list[int | None], window: int, slide: int) -> None:
    names = ("WINAVG", "WINSUM", "WINMIN", "WINMAX", "WINCOUNT", "TREND")
    columns = ", ".join(f"{name}({window}, {slide}, temp) AS {name}" for name in names)
    rows = on_mote(library, plan(f"epoch, temp, {columns}"), temps)
    over = f"OVER (ORDER BY epoch ROWS {window - 1} PRECEDING)"
    expected = in_duckdb(
        f"SELECT epoch, temp, avg(temp) {over}, sum(temp) {over}, min(temp) {over}, max(temp) {over}, "
        f"count(temp) {over}, regr_slope(temp, epoch) {over} FROM sensors "
        f"QUALIFY row_number() OVER (ORDER BY epoch) % {slide} = 0 ORDER BY epoch",
        temps,
    )
    assert len(rows) == len(expected)
    for row, values in zip(rows, expected, strict=True):
        for got, value in zip(row.values(), values, strict=True):
            if value is None or got is None:
                assert got is None
                assert value is None or math.isnan(value)  # a slope of one point is NaN there
            else:
                assert got == pytest.approx(float(value), abs=0.5000001e-5, rel=1e-9)


@settings(max_examples=40)
@given(readings, st.integers(-4000, 9000), st.integers(1, 5))
def test_windows_hold_rows_that_pass(library: Path, temps: list[int | None], least: int, window: int) -> None:
    bound = f"{Decimal(least) / 100:f}"
    wanted = plan(
        f"epoch, WINMAX({window}, temp) AS high", f"WHERE temp > {bound} HAVING WINCOUNT({window}, temp) > 1"
    )
    over = f"OVER (ORDER BY epoch ROWS {window - 1} PRECEDING)"
    expected = in_duckdb(
        f"SELECT epoch, max(temp) {over} FROM sensors WHERE temp > {bound} QUALIFY count(temp) {over} > 1 ORDER BY epoch",
        temps,
    )
    got = [(row["epoch"], row["high"]) for row in on_mote(library, wanted, temps)]
    assert got == [(epoch, float(high)) for epoch, high in expected]


@settings(max_examples=60)
@given(
    readings,
    st.integers(-4000, 9000),
    st.integers(1, 8),
    st.integers(1, 8),
    st.sets(st.integers(101, 130), max_size=4),
)
@example([None] * 18 + [0, None, 0], -1, 1, 2, {119})
@example([None] * 18 + [0, None, 0], -1, 3, 2, {119})
def test_windows_of_times_hold_what_passed_in_them(
    library: Path, temps: list[int | None], least: int, window: int, slide: int, missed: set[int]
) -> None:
    """Epochs that WHERE does not let pass, or that the mote missed, are in the window with nothing."""
    bound = f"{Decimal(least) / 100:f}"
    names = ("WINAVG", "WINSUM", "WINMIN", "WINMAX", "WINCOUNT", "TREND")
    columns = ", ".join(f"{name}(temp, {window} s, {slide} s) AS {name}" for name in names)
    rows = on_mote(library, plan(f"epoch, {columns}", f"WHERE temp > {bound}"), temps, frozenset(missed))
    over = f"OVER (ORDER BY epoch RANGE {window - 1} PRECEDING)"
    functions = ", ".join(
        f"{function}(temp) FILTER (temp > {bound} AND NOT missed) {over}"
        for function in ("avg", "sum", "min", "max", "count")
    )
    slope = f"regr_slope(temp, epoch) FILTER (temp > {bound} AND NOT missed) {over}"
    gone = f"epoch IN ({', '.join(map(str, [0, *missed]))})"
    every = in_duckdb(
        f"SELECT epoch, {functions}, {slope} FROM (SELECT *, {gone} AS missed FROM sensors) ORDER BY epoch",
        temps,
    )
    expected = {values[0]: values for values in every}
    counts = {epoch: values[5] for epoch, values in expected.items()}
    ends = due(len(temps), window, slide, missed)
    assert [row["epoch"] for row in rows] == [epoch for epoch, end in ends.items() if counts[end] > 0]
    for row in rows:
        for got, value in zip([*row.values()][1:], expected[ends[row["epoch"]]][1:], strict=True):
            if value is None or got is None:
                assert got is None
                assert value is None or math.isnan(value)
            else:
                assert got == pytest.approx(float(value), abs=0.5000001e-5, rel=1e-9)


def due(length: int, window: int, slide: int, missed: set[int]) -> dict[int, int]:
    """Epochs with a row, and those that its windows end with: each slide-th of network time; where that was missed, the row comes in the
    first one after it that was not. A mote that missed a slide begins anew, and has no row of a window that it has not seen from
    its beginning on."""
    found, last = {}, 99
    for epoch in range(100, 100 + length):
        if epoch in missed:
            continue
        end = (epoch + 1) // slide * slide - 1
        if last < end <= epoch and end - window + 1 >= 100 and (epoch - last <= slide or end == epoch):
            found[epoch] = end
        last = epoch
    return found


@settings(max_examples=40)
@given(readings, st.integers(1, 15))
def test_exponential_average(library: Path, temps: list[int | None], weight: int) -> None:
    average: Fraction | None = None
    rows = on_mote(library, plan(f"EXPAVG({weight}, temp) AS a"), temps)
    assert len(rows) == len(temps)
    for row, temp in zip(rows, temps, strict=True):
        if temp is not None:
            reading = Fraction(temp, 100)
            average = reading if average is None else average + (reading - average) / 2**weight
        assert (row["a"] is None) == (average is None)
        assert average is None or row["a"] == pytest.approx(float(average), abs=1e-4)


@settings(max_examples=40)
@given(readings, st.integers(1, 3000))
def test_delta_reports_what_differs(library: Path, temps: list[int | None], threshold: int) -> None:
    expected, last = [], None
    for epoch, temp in enumerate(temps, 100):
        if temp is not None and (last is None or abs(temp - last) >= threshold):
            expected.append((epoch, temp / 100))
            last = temp
    rows = on_mote(library, plan(f"epoch, DELTA({Decimal(threshold) / 100:f}, temp) AS t"), temps)
    assert [(row["epoch"], row["t"]) for row in rows] == expected


@settings(max_examples=40)
@given(readings, st.integers(1, 3000), st.integers(1, 5))
def test_delta_beside_a_slide_differs_from_the_last_row(
    library: Path, temps: list[int | None], threshold: int, slide: int
) -> None:
    """Not from a reading that the window's slide left without a row."""
    expected, last = [], None
    for epoch, temp in enumerate(temps, 100):
        due = (epoch - 99) % slide == 0
        if due and temp is not None and (last is None or abs(temp - last) >= threshold):
            expected.append((epoch, temp / 100))
            last = temp
    delta = f"DELTA({Decimal(threshold) / 100:f}, temp) AS t"
    rows = on_mote(library, plan(f"epoch, {delta}, WINCOUNT(1, {slide}, temp)"), temps)
    assert [(row["epoch"], row["t"]) for row in rows] == expected


@given(st.integers(1, 40))
def test_adaptive_delta_grows_quiet(library: Path, length: int) -> None:
    """A signal that jumps by 8 degrees each second: thresholds 1, 2, 4, 8, 16, 32, 16, 32, 16, … times 0.5 degrees: each row doubles
    them, the first too, and each epoch without one halves them."""
    temps: list[int | None] = [800 * (i % 2) for i in range(length)]
    expected, factor, last = [], 1, None
    for epoch, temp in enumerate(temps, 100):
        assert temp is not None
        if last is None or abs(temp - last) >= 50 * factor:
            expected.append(epoch)
            factor, last = min(64, 2 * factor), temp
        else:
            factor = max(1, factor // 2)
    assert [row["epoch"] for row in on_mote(library, plan("epoch, ADPDELTA(0.5, temp)"), temps)] == expected


def test_random_reading_is_one_of_the_window(library: Path) -> None:
    temps: list[int | None] = [100 * i for i in range(60)]
    rows = on_mote(library, plan("epoch, WINRAND(10, temp) AS t"), temps)
    places = [row["epoch"] - 100 - row["t"] for row in rows]
    assert all(0 <= place <= min(9, row["epoch"] - 100) for place, row in zip(places, rows, strict=True))
    assert len(set(places)) >= 7


def test_slope_of_a_reading_that_takes_all_32_bits(library: Path) -> None:
    """Its bounds are further apart than 32 bits say; where a slope is, too, it is NULL."""
    rows = on_mote(library, plan("TREND(3, nodeid - epoch) AS t"), [0, 0, 0])
    assert [row["t"] for row in rows] == [None, -1, -1]


def test_windows_as_the_paper_writes_them() -> None:
    """TinyDB 2005, 3.2: the last 30 s at each fifth second."""
    (window,) = plan("WINAVG(light, 30s, 5s)").temporal
    assert parameters(window) == Parameters(30, 5, 3, 1000)
    assert render(window) == "WINAVG(light, 30 s, 5 s)"
    (rows,) = plan("WINAVG(30, 5, light)").temporal
    assert parameters(rows) == Parameters(30, 5, 3)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("PULSE(accel_x > 0.3)", "PULSE(accel_x > 0.3)"),
        ("PULSES(300, accel_x > 0.3)", "PULSES(300, accel_x > 0.3)"),
        ("PULSES(accel_x > 0.3, 5 min)", "PULSES(300, accel_x > 0.3)"),
        ("DELTA(600, temp)", "DELTA(600, temp)"),
        ("WINAVG(30, 5, light)", "WINAVG(30, 5, light)"),
        ("QUANTILE(light, 0.25)", "QUANTILE(light, 0.25)"),
        ("MEDIAN(light * 2)", "QUANTILE(light * 2, 0.5)"),
    ],
)
def test_what_is_said_of_an_aggregate_is_in_the_language(written: str, said: str) -> None:
    (output,) = plan(f"{written} AS x").outputs
    assert render(output.expr) == said
    assert plan(f"{said} AS x").outputs[0].expr == output.expr


def test_what_is_known_without_sampling_stands_beside_windows_of_times() -> None:
    query = merge([plan("nodeid, epoch, room, WINMAX(light, 8 s, 8 s)", "WHERE temp > 20")])
    assert [c.name for c in query.columns] == ["room", "w0"]


def test_windows_are_shared_and_survive_the_catalog() -> None:
    plans = [plan("nodeid, temp, WINAVG(8, temp)"), plan("light, WINAVG(8, temp) * 2")]
    query = merge(plans)
    assert [c.name for c in query.columns] == ["light", "temp", "w0"]
    assert MoteQuery.from_dict(query.to_dict()) == query


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT WINAVG(temp) FROM sensors SAMPLE PERIOD 1 s", "WINAVG does not take these at column 8: "
         "write WINAVG(10, temp), or WINAVG(10, 5, temp): the last 10 rows, at each fifth"),
        ("SELECT WINAVG(65, temp) FROM sensors SAMPLE PERIOD 1 s",
         "WINAVG needs a whole number from 1 to 64 as window at column 15: "
         "write WINAVG(10, temp), or WINAVG(10, 5, temp): the last 10 rows, at each fifth"),
        ("SELECT DELTA(800, temp) FROM sensors SAMPLE PERIOD 1 s",
         "DELTA's threshold goes from 0.01 to 655.35 at column 14: "
         "write DELTA(0.5, temp): rows that differ by 0.5 degrees from the one before"),
        ("SELECT WINAVG(5, temp), AVG(temp) FROM sensors SAMPLE PERIOD 1 s",
         "windows are over each mote's own rows, and aggregates over all motes at column 8: "
         "ask for them in two queries"),
        ("SELECT WINAVG(light, 5s) SAMPLE PERIOD 2 s", "WINAVG's 5 s are no whole number of rows at column 22: "
         "write a multiple of the sample period of 2 s"),
        ("SELECT WINAVG(light, 30s) LIFETIME 5 days", "this window's length in rows is not known at column 22: "
         "LIFETIME chooses the sample period: count rows, as in WINAVG(10, temp)"),
        ("SELECT WINAVG(5, temp) FROM sensors ONCE",
         "ONCE gives one row, and windows need several at column 8: write SAMPLE PERIOD"),
        ("SELECT WINAVG(5, 2, temp), WINMAX(5, 3, temp) FROM sensors SAMPLE PERIOD 1 s",
         "windows that slide by 2 and 3 rows at column 8: "
         "give all windows the same slide, or ask for them in two queries"),
        ("SELECT WINAVG(5, temp), WINMAX(temp, 5 s, 1 s) FROM sensors SAMPLE PERIOD 1 s",
         "windows of rows and of times do not give their rows together at column 8: "
         "write all lengths as times, or none"),
        ("SELECT light, WINAVG(temp, 5 s) FROM sensors WHERE temp > 5 SAMPLE PERIOD 1 s",
         "'light' is of an epoch that passes WHERE, and a window of times gives rows in others too at column 8: "
         "leave it out, or count rows, as in WINAVG(10, temp)"),
        ("SELECT WINAVG(temp, 5 s), DELTA(1, temp) FROM sensors WHERE temp > 5 SAMPLE PERIOD 1 s",
         "DELTA is of an epoch that passes WHERE, and a window of times gives rows in others too at column 8: "
         "count rows, as in WINAVG(10, temp)"),
        ("ON ALIGNED EVENT look: SELECT WINAVG(temp, 5 s) FROM sensors SAMPLE PERIOD 1 s FOR 60 s",
         "the epochs of ON ALIGNED EVENT are not those of a clock at column 31: "
         "count rows, as in WINAVG(10, temp)"),
        ("SELECT temp FROM sensors WHERE WINAVG(5, temp) > 3 SAMPLE PERIOD 1 s",
         "WINAVG is not allowed in WHERE, which is asked of each mote before it aggregates at column 32: HAVING chooses by aggregates"),
    ],
)  # fmt: skip
def test_refusals(query: str, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        plan_query(query)
    assert raised.value.summary == message
