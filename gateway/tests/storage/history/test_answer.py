"""HISTORY: the past in the language of queries, against DuckDB over the same files."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.pasts import (
    ORIGIN,
    ended,
    past_engine,
    plain_records,
    plan_of,
    rows_behind,
    shuffled,
    stream_of,
)
from skerry.planner.features.history import explain_past
from skerry.planner.planner import plan_query
from skerry.sql.errors import QueryError
from skerry.storage.history import answer as answer_module
from skerry.storage.history.answer import Answer
from skerry.storage.history.layout import READINGS
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.record import Records
from skerry.storage.log.stream_log import StreamLog
from skerry.streams.stream import Stream
from skerry_protocol.bytecode import hashed

ATTRIBUTES = ["temp", "light", "humidity", "voltage", "level"]


@pytest.fixture(scope="module")
def streams() -> list[Stream]:
    """A slow one, a fast one from a cut-over on, one beside them, a second session."""
    return [
        stream_of(1, "SELECT temp, light, level FROM sensors SAMPLE PERIOD 5 s", 0, 1_820_000),
        stream_of(
            2, "SELECT temp, humidity, light, voltage FROM sensors SAMPLE PERIOD 2 s", 903_001, 1_820_000
        ),
        stream_of(3, "SELECT temp, voltage FROM sensors LIFETIME 24 weeks", 300_000, None),
        stream_of(4, "SELECT AVG(temp) FROM sensors SAMPLE PERIOD 30 s", 0, None),
        stream_of(5, "SELECT temp, light, level FROM sensors SAMPLE PERIOD 10 s", 8000, None, session=2),
    ]


@pytest.fixture(scope="module")
def records(streams: list[Stream]) -> Records:
    parts = []
    for stream in streams:
        period = stream.mote_query.period_ms
        last = 1_815_000 if stream.session == 1 else 600_000
        epochs = np.random.default_rng(stream.number).permutation(last // period)
        parts.append(
            plain_records(stream, np.sort(epochs[: len(epochs) * 4 // 5]), [1, 2, 3], seed=stream.number)
        )
    return shuffled(parts)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory, records: Records, streams: list[Stream]) -> Any:
    """History and log: nothing compacted, a part, everything."""
    found = []
    for share in (0.0, 0.6, 1.0):
        data = tmp_path_factory.mktemp("data")
        log, history = StreamLog(data, 1000), History(data)
        for start in range(0, len(records), 700):
            log.append(records[start : start + 700].copy())
        history.compact(log.path, int(log.rows * share), streams)
        log.drop_before(history.manifest.rows)
        found.append((history, log))
    return found


def answered(
    history: History, log: StreamLog, streams: list[Stream], sql: str, now_us: int, end: int
) -> list[tuple[int, dict[str, Any]]]:
    plan = plan_of(sql)
    assert plan.history is not None
    reader = Reader(history, log.path, streams, plan.attributes, now_us - plan.history.span_ms * 1000)
    answer, rows, position, more = Answer(plan, reader, end, past_engine()), [], -1, True
    while more:
        found, position, more = rows_behind(answer, position)
        rows += found
    assert [number for number, _ in rows] == sorted({number for number, _ in rows})
    middle = rows[len(rows) // 2][0] if rows else 0
    behind, _, _ = rows_behind(Answer(plan, reader, end, past_engine()), middle)
    assert behind == [r for r in rows if r[0] > middle][: len(behind)]
    return rows


def sensors_view(history: History, since_us: int, end: int) -> duckdb.DuckDBPyConnection:
    """The files as a table of exact decimals."""
    connection = duckdb.connect()
    exact = ", ".join(f"{r.name}::DECIMAL(18, {r.digits}) AS {r.name}" for r in READINGS if r.digits)
    connection.execute(
        f"CREATE VIEW sensors AS SELECT * REPLACE ({exact}) FROM '{history.path}/sensors/*.parquet' "
        f"WHERE epoch_us(time) >= {since_us} AND row < {end}"
    )
    return connection


def plain(value: Any) -> Any:
    """A decimal as the nearest double."""
    return float(value) if isinstance(value, Decimal) else value


_ZERO = datetime.fromtimestamp(0, UTC)
NOW = ORIGIN + 86_400_000_000 + 700_000_000

numbers = st.one_of(
    st.sampled_from(ATTRIBUTES),
    st.builds("({} + {})".format, st.sampled_from(ATTRIBUTES), st.integers(-9, 9)),
)
wheres = st.one_of(
    st.just("TRUE"),
    st.builds("{} > {}".format, st.sampled_from(ATTRIBUTES), st.integers(0, 60)),
    st.builds(
        "({} < {} OR nodeid = {})".format, st.sampled_from(ATTRIBUTES), st.integers(0, 60), st.integers(1, 3)
    ),
    st.builds("{} IS NOT NULL".format, st.sampled_from(ATTRIBUTES)),
)
spans = st.sampled_from(
    [("HISTORY 7 day", 7 * 86400), ("HISTORY 1450 min", 1450 * 60), ("HISTORY 8 min", 480)]
)


def where_of(condition: str) -> str:
    return "" if condition == "TRUE" else f"WHERE {condition}"


@settings(max_examples=25, deadline=None)
@given(
    st.lists(numbers, min_size=1, max_size=3, unique=True),
    wheres,
    spans,
    st.integers(0, 2),
    st.floats(0.1, 1),
)
def test_rows_as_recorded_equal_duckdbs(
    past: Any,
    streams: list[Stream],
    columns: list[str],
    where: str,
    span: tuple[str, int],
    which: int,
    share: float,
) -> None:
    history, log = past[which]
    end = int(log.rows * share)
    selected = ", ".join(f"{column} AS c{i}" for i, column in enumerate(columns))
    rows = answered(
        history,
        log,
        streams,
        f"SELECT nodeid, {selected} FROM sensors {span[0]} ONLY {where_of(where)}",
        NOW,
        end,
    )
    with sensors_view(past[2][0], NOW - span[1] * 1_000_000, end) as connection:
        expected = connection.execute(
            f"SELECT row, nodeid, {selected} FROM sensors {where_of(where)} ORDER BY row"
        ).fetchall()
    assert [(number, row["nodeid"]) for number, row in rows] == [row[:2] for row in expected]
    for (_, got), want in zip(rows, expected, strict=True):
        assert list(got.values())[1:] == [plain(v) for v in want[2:]]


def test_times_equal_duckdbs(past: Any, streams: list[Stream]) -> None:
    """Of rows when they were sampled, of epochs' aggregates when those began."""
    history, log = past[1]
    end = log.rows
    sampled = answered(history, log, streams, "SELECT time, nodeid FROM sensors HISTORY 7 day ONLY", NOW, end)
    epochs = answered(
        history,
        log,
        streams,
        "SELECT time, COUNT(*) AS n FROM sensors HISTORY 7 day ONLY SAMPLE PERIOD 30 s",
        NOW,
        end,
    )
    with sensors_view(past[2][0], NOW - 7 * 86_400_000_000, end) as connection:
        rows = connection.execute("SELECT epoch_us(time), nodeid FROM sensors ORDER BY row").fetchall()
        begins = connection.execute(
            "SELECT min(epoch_us(time) - network_ms % 30000 * 1000), count(*) "
            f"FROM {FIRST.format(period=30000)} GROUP BY session, network_ms // 30000 ORDER BY max(row)"
        ).fetchall()
    microsecond = timedelta(microseconds=1)
    assert [((row["time"] - _ZERO) // microsecond, row["nodeid"]) for _, row in sampled] == rows
    assert [((row["time"] - _ZERO) // microsecond, row["n"]) for _, row in epochs] == begins


def test_groups_by_epoch_equal_duckdbs(past: Any, streams: list[Stream]) -> None:
    """Each epoch is in one window of 30 s."""
    history, log = past[1]
    sql = "SELECT epoch, COUNT(*, 30 s) AS n, MAX(temp, 30 s) AS t FROM sensors GROUP BY epoch HISTORY 7 day ONLY SAMPLE PERIOD 10 s"
    plan = plan_of(sql)
    assert plan.history is not None
    reader = Reader(history, log.path, streams, plan.attributes, NOW - plan.history.span_ms * 1000)
    rows, _, _ = rows_behind(Answer(plan, reader, log.rows, past_engine()))
    with sensors_view(past[2][0], NOW - 7 * 86_400_000_000, log.rows) as connection:
        expected = connection.execute(
            f"SELECT network_ms // 10000, count(*), max(temp) FROM {FIRST.format(period=10000)} GROUP BY session, network_ms // 10000"
        ).fetchall()
    got = {tuple(row.values()) for _, row in rows}
    wanted = {tuple(map(plain, row)) for row in expected}
    # A late row brings a window again; of the last windows none has told yet.
    assert len(wanted - got) <= 12
    final = {row[0]: row for _, values in rows for row in [tuple(values.values())]}
    assert len(final) > 50


aggregates = st.sampled_from(
    ["COUNT(*)", "COUNT(temp)", "SUM(light)", "MIN(temp)", "MAX(voltage)", "SUM(temp + light)"]
)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(aggregates, min_size=1, max_size=3, unique=True), wheres, spans, st.integers(0, 2),
    st.sampled_from(["", "nodeid", "level", "light > 20, nodeid"]), st.sampled_from(["", "COUNT(*) > 20"]),
    st.sampled_from([None, 10, 30]),
)  # fmt: skip
def test_aggregates_equal_duckdbs(
    past: Any,
    streams: list[Stream],
    wanted: list[str],
    where: str,
    span: tuple[str, int],
    which: int,
    group: str,
    having: str,
    period: int | None,
) -> None:
    history, log = past[which]
    end = log.rows
    having_clause = f"HAVING {having}" if having else ""
    keys = [f"{key} AS k{i}" for i, key in enumerate(group.split(", "))] if group else []
    selected = ", ".join([*keys, *(f"{a} AS c{i}" for i, a in enumerate(wanted))])
    sql = f"SELECT {selected} FROM sensors {span[0]} ONLY {where_of(where)} {f'GROUP BY {group}' if group else ''} {having_clause}"
    if period is not None:
        sql += f" SAMPLE PERIOD {period} s"
    rows = answered(history, log, streams, sql, NOW, end)
    epochs = f"session, network_ms // {(period or 1) * 1000}" if period is not None else ""
    grouped = ", ".join(part for part in (epochs, group) if part)
    first = f"{FIRST.format(period=period * 1000)}" if period is not None else "sensors"
    with sensors_view(past[2][0], NOW - span[1] * 1_000_000, end) as connection:
        expected = connection.execute(
            f"SELECT max(row), {selected} FROM {first} {where_of(where)} {f'GROUP BY {grouped}' if grouped else ''} {having_clause} "
            "ORDER BY 1"
        ).fetchall()
    assert len(rows) == len(expected)
    for (number, got), (largest, *want) in zip(rows, expected, strict=True):
        assert number == (end - 1 if largest is None else largest)
        assert list(got.values()) == [plain(v) for v in want]


#: Each mote's first sample in each epoch.
FIRST = (
    "(SELECT * FROM sensors QUALIFY row_number() OVER (PARTITION BY session, nodeid, network_ms // {period} "
    "ORDER BY network_ms, row) = 1)"
)


def test_the_first_reading_in_each_epoch_over_a_cut_over(past: Any, streams: list[Stream]) -> None:
    for history, log in past:
        rows = answered(
            history,
            log,
            streams,
            "SELECT nodeid, epoch, temp FROM sensors HISTORY 7 day ONLY SAMPLE PERIOD 10 s",
            NOW,
            log.rows,
        )
        with sensors_view(past[2][0], NOW - 7 * 86_400_000_000, log.rows) as connection:
            expected = connection.execute(
                f"SELECT nodeid, network_ms // 10000, temp FROM {FIRST.format(period=10000)} ORDER BY row"
            ).fetchall()
        assert [tuple(row.values()) for _, row in rows] == [tuple(map(plain, row)) for row in expected]
        assert len(rows) > 500


def test_epochs_are_not_lost_where_the_schedule_would_have_sampled_in_a_gap(tmp_path: Path) -> None:
    """Two sessions whose motes began in the middle of an epoch, and of which rows are missing here and there."""
    rng = np.random.default_rng(6)
    streams = [stream_of(n, "SELECT temp FROM sensors SAMPLE PERIOD 7 s", 0, session=n) for n in (1, 2)]
    parts = [
        plain_records(
            stream, np.sort(rng.choice(np.arange(13, 193), 140, replace=False)), [1, 2, 3, 4], seed=n
        )
        for n, stream in enumerate(streams)
    ]
    records = shuffled([part[rng.random(len(part)) < 0.98] for part in parts])
    log, history = StreamLog(tmp_path), History(tmp_path)
    log.append(records)
    history.compact(log.path, log.rows - 100, streams)
    since = NOW - 7 * 86_400_000_000
    asked = "SELECT epoch, nodeid, temp FROM sensors SAMPLE PERIOD 5 min HISTORY 7 day ONLY"
    rows = answered(history, log, streams, asked, NOW, log.rows)
    warm = answered(history, log, streams, asked + " WHERE temp > 30", NOW, log.rows)
    joined = answered(history, log, streams, asked.replace("epoch, nodeid, temp", "COUNT(*)"), NOW, log.rows)
    history.compact(log.path, log.rows, streams)
    with sensors_view(history, since, log.rows) as connection:
        expected = connection.execute(
            f"SELECT network_ms // 300000, nodeid, temp FROM {FIRST.format(period=300_000)} ORDER BY row"
        ).fetchall()
    assert [tuple(row.values()) for _, row in rows] == [tuple(map(plain, row)) for row in expected]
    assert sorted({row["epoch"] for _, row in rows}) == [0, 1, 2, 3, 4]
    assert len(rows) == 2 * 5 * 4
    above = [tuple(map(plain, row)) for row in expected if row[2] is not None and row[2] > 30]
    assert [tuple(row.values()) for _, row in warm] == above, (
        "before WHERE: no other of the epoch takes its place"
    )
    assert [row["COUNT(*)"] for _, row in joined] == [4] * 10


def test_functions_of_a_row_equal_their_definitions(past: Any, streams: list[Stream]) -> None:
    history, log = past[1]
    sql = (
        "SELECT nodeid, epoch, temp, abs(temp - 20) AS off, hash(temp) AS h, hash(nodeid - 9) AS n, random(5) AS r FROM sensors "
        "WHERE random(5) < 0.3 AND hash(temp) % 2 = 0 HISTORY 7 day ONLY SAMPLE PERIOD 5 s"
    )
    rows = [row for _, row in answered(history, log, streams, sql, NOW, log.rows)]
    assert len(rows) > 5
    for row in rows:
        value = None if row["temp"] is None else round(row["temp"] * 100)
        assert row["off"] == (None if value is None else pytest.approx(abs(value - 2000) / 100))
        assert row["h"] == (None if value is None else hashed(value))
        assert row["n"] == hashed(row["nodeid"] - 9)
        assert row["r"] == hashed(hashed(row["nodeid"] - 5) - row["epoch"]) % 10**6 / 1e6 < 0.3


def test_averages_and_summaries_are_exact(past: Any, streams: list[Stream]) -> None:
    history, log = past[1]
    sql = (
        "SELECT nodeid, AVG(temp) AS mean, STDDEV(light) AS deviation, VARIANCE(temp) AS variance, MEDIAN(light) AS median, "
        "QUANTILE(temp, 0.9) AS q, COUNT(DISTINCT level) AS levels FROM sensors GROUP BY nodeid HISTORY 7 day ONLY"
    )
    rows = answered(history, log, streams, sql, NOW, log.rows)
    with sensors_view(past[2][0], 0, log.rows) as connection:
        expected = connection.execute(
            "SELECT nodeid, avg(temp), stddev_samp(light), var_samp(temp), quantile_disc(light, 0.5), quantile_disc(temp, 0.9), "
            "count(DISTINCT level) FROM sensors GROUP BY nodeid ORDER BY max(row)"
        ).fetchall()
    assert len(rows) == 3
    for (_, row), (node, mean, deviation, variance, median, q, levels) in zip(rows, expected, strict=True):
        assert row["nodeid"] == node
        assert math.isclose(row["mean"], float(mean), abs_tol=0.51e-5)
        assert math.isclose(row["deviation"], float(deviation), abs_tol=0.51e-3)
        assert math.isclose(row["variance"], float(variance), abs_tol=0.51e-7)
        assert (row["median"], row["q"], row["levels"]) == (median, plain(q), levels)


#: Wider ones than the 16 bits that motes keep of each value, too.
_VALUES = st.one_of(
    numbers,
    st.sampled_from(["light * 3", "temp * light", "humidity - light", "voltage / 7", "-light % 7", "xpos"]),
)
_SUMMARIES = {
    "MEDIAN({})": "quantile_disc({}, 0.5)",
    "QUANTILE({}, 0.9)": "quantile_disc({}, 0.9)",
    "QUANTILE({}, 0.015)": "quantile_disc({}, 0.015)",
    "QUANTILE({}, 0)": "min({})",
    "QUANTILE({}, 1)": "max({})",
    "STDDEV({})": "stddev_samp({})",
    "VARIANCE({})": "var_samp({})",
    "COUNT(DISTINCT {})": "count(DISTINCT {})",
    "AVG({})": "avg({})",
    "MAX({})": "max({})",
}
_HAVING = [
    "{} IS NOT NULL", "{} > 20 OR {} IS NULL", "NOT ({} BETWEEN 3 AND 30)", "{} + 2 * {} > 40", "COUNT(*) > 3 AND {} < {}",
]  # fmt: skip


@st.composite
def summaries(draw: st.DrawFn) -> tuple[str, str]:
    """An aggregate, ours and DuckDB's."""
    form, value = draw(st.sampled_from([*_SUMMARIES])), draw(_VALUES)
    # In DuckDB whole numbers are divided as whole numbers, and a decimal is rounded as a double.
    theirs = value.replace("voltage / 7", "round(voltage / 7, 6)").replace("xpos", "NULL::DECIMAL(9, 2)")
    return form.format(value), _SUMMARIES[form].format(theirs)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(summaries(), min_size=1, max_size=3), st.sampled_from(["", *_HAVING]), st.lists(summaries(), min_size=2, max_size=2),
    wheres, st.integers(0, 2), st.sampled_from(["", "nodeid", "level", "light > 20, nodeid", "level % 3"]),
)  # fmt: skip
def test_summaries_and_having_equal_duckdbs(
    past: Any,
    streams: list[Stream],
    wanted: list[tuple[str, str]],
    having: str,
    asked: list[tuple[str, str]],
    where: str,
    which: int,
    group: str,
) -> None:
    history, log = past[which]
    texts = []
    for side in (0, 1):
        keys = [f"{key} AS k{i}" for i, key in enumerate(group.split(", "))] if group else []
        columns = ", ".join([*keys, *(f"{one[side]} AS c{i}" for i, one in enumerate(wanted))])
        rest = f"{where_of(where)} {f'GROUP BY {group}' if group else ''}"
        condition = having.format(*(one[side] for one in asked))
        texts.append(f"{columns} FROM sensors {rest} {f'HAVING {condition}' if having else ''}")
    try:
        rows = answered(history, log, streams, f"SELECT {texts[0]} HISTORY 7 day ONLY", NOW, log.rows)
    except QueryError as error:
        # An average of volts is not compared with one of lux, and squares of the widest values are beyond what is reckoned with.
        if "unit mismatch" not in error.message and "18 digits" not in error.hint:
            raise
        return
    with sensors_view(past[2][0], 0, log.rows) as connection:
        expected = connection.execute(f"SELECT max(row), {texts[1]} ORDER BY 1").fetchall()
    assert [number for number, _ in rows] == [
        log.rows - 1 if largest is None else largest for largest, *_ in expected
    ]
    digits = [output.digits for output in plan_of(f"SELECT {texts[0]} HISTORY 7 day ONLY").outputs]
    for (_, got), (_, *want) in zip(rows, expected, strict=True):
        for places, mine, theirs in zip(digits, got.values(), want, strict=True):
            assert (mine is None) == (theirs is None), (got, want)
            assert mine is None or math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=0.5001 * 10**-places)


def test_lists_over_the_past(past: Any, streams: list[Stream]) -> None:
    history, log = past[1]
    rows = answered(
        history,
        log,
        streams,
        "SELECT TOP(3, light) AS t, HISTOGRAM(temp, 0, 90, 9) AS h FROM sensors HISTORY 7 day ONLY",
        NOW,
        log.rows,
    )
    [(_, row)] = rows
    with sensors_view(past[2][0], 0, log.rows) as connection:
        best = connection.execute(
            "SELECT light, nodeid FROM sensors ORDER BY light DESC NULLS LAST, nodeid LIMIT 3"
        ).fetchall()
        bins = connection.execute(
            "SELECT least(greatest(floor(temp / 10), 0), 8)::INT AS b, count(*) FROM sensors WHERE temp IS NOT NULL GROUP BY b ORDER BY b"
        ).fetchall()
    assert [(entry["value"], entry["nodeid"]) for entry in row["t"]] == best
    assert row["h"] == [count for _, count in bins]


def test_pieces_are_found_through_stretches_without_rows(
    past: Any, streams: list[Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    history, log = past[1]
    sql = "SELECT nodeid FROM sensors HISTORY 7 day ONLY WHERE temp > 88"
    whole = answered(history, log, streams, sql, NOW, log.rows)
    monkeypatch.setattr(answer_module, "PIECE_ROWS", 13)
    assert answered(history, log, streams, sql, NOW, log.rows) == whole
    assert 0 < len(whole) < 400


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT temp HISTORY 0 s ONLY", "HISTORY 0 ms is out of range"),
        ("SELECT temp HISTORY 3 h ONLY ONCE", "HISTORY does not go with ONCE"),
        ("SELECT temp HISTORY 3 h LIFETIME 3 week", "HISTORY does not go with LIFETIME"),
        ("SELECT epoch HISTORY 3 h ONLY", "no epoch of yours"),
        ("SELECT temp SAMPLE PERIOD 10 s FOR 1 h HISTORY 3 h ONLY", "leave FOR out"),
        ("SELECT WINAVG(10, temp) HISTORY 3 h SAMPLE PERIOD 10 s", "windows that motes compute"),
        ("SELECT temp HISTORY 3 h SAMPLE PERIOD 10 s SIGNAL hot", "events and actions"),
        (
            "SELECT MEDIAN(temp) HISTORY 3 h SAMPLE PERIOD 10 s",
            "MEDIAN does not go with HISTORY that goes on",
        ),
        ("SELECT nodeid GROUP BY nodeid HISTORY 3 h SAMPLE PERIOD 10 s", "GROUP BY without an aggregate"),
        ("SELECT AVG(temp, 5 min) HISTORY 3 h ONLY", "windows over rows as they were recorded"),
        ("SELECT temp HISTORY 3 h HISTORY 4 h ONLY", "HISTORY is said twice"),
    ],
)
def test_what_the_past_cannot_answer_is_refused(sql: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        plan_query(sql)


def test_aggregates_that_go_on_are_windows_of_a_sample_period() -> None:
    plain = plan_of("SELECT MAX(temp) - MIN(temp) AS x, COUNT(*) AS n HISTORY 3 h SAMPLE PERIOD 10 s")
    windows = plan_of(
        "SELECT MAX(temp, 10 s) - MIN(temp, 10 s) AS x, COUNT(*, 10 s) AS n HISTORY 3 h SAMPLE PERIOD 10 s"
    )
    assert plain.window is not None
    assert (plain.window, plain.outputs) == (windows.window, windows.outputs)


def test_explain_says_that_motes_do_nothing() -> None:
    text = explain_past(
        plan_of("SELECT AVG(temp) FROM sensors WHERE light > 3 HISTORY 7 day ONLY SAMPLE PERIOD 10 s")
    )["text"]
    assert "motes\n  nothing" in text
    assert "the first sample in each 10 s in the last 1 week" in text


def test_over_no_rows_there_is_one_answer(tmp_path: Path) -> None:
    log, history = StreamLog(tmp_path), History(tmp_path)
    stream = ended(stream_of(1, "SELECT temp FROM sensors SAMPLE PERIOD 1 s"), 10)
    [(_, row)] = answered(
        history, log, [stream], "SELECT COUNT(*) AS n, AVG(temp) AS t FROM sensors HISTORY 1 h ONLY", NOW, 0
    )
    assert row == {"n": 0, "t": None}
    assert (
        answered(
            history,
            log,
            [stream],
            "SELECT level, COUNT(*) FROM sensors GROUP BY level HISTORY 1 h ONLY",
            NOW,
            0,
        )
        == []
    )
