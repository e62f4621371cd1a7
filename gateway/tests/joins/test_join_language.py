"""What users say of joins and of streams' fields: units in sums, TRUE and FALSE, and what is told of what cannot be."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from skerry.planner.model.source_plans import SourcePlan
from skerry.sensors.definitions import SensorTable, define
from skerry.sensors.evaluate import DECIMAL, MOMENT, evaluate, passes
from skerry.sensors.planning import planned
from skerry.sql import sensor_statements
from skerry.sql.errors import QueryError
from skerry.sql.sensor_statements import CreateSensors

CREATE = (
    "CREATE SENSORS detectors (id INT, xpos DOUBLE 'm', ok BOOLEAN, "
    "reading STREAM (gas TEXT, level DECIMAL 'ppm', at TIMESTAMP TIME))"
)
PAIRS = "SELECT a.gas FROM detectors a, detectors b"


def table() -> SensorTable:
    statement = sensor_statements.parse(CREATE)
    assert isinstance(statement, CreateSensors)
    return define(statement, "ada", 1)


def plan_of(sql: str) -> SourcePlan:
    plan = planned(sql, {"detectors": table()})
    assert plan is not None
    assert plan.sources is not None
    return plan.sources


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("level > 1 ppm + 2 ppm", [False, True]),
        ("level > -1 ppm", [True, True]),
        ("1 ppm + level > 4 ppm", [False, True]),
        ("level - 1 ppm BETWEEN 1 ppm AND 2 ppm", [True, False]),
        ("xpos >= 1 km - 20 m", [False, True]),
        ("ok = TRUE", [True, False]),
        ("NOT ok AND TRUE", [False, True]),
        ("(level > 3) = false", [True, False]),
    ],
)
def test_sums_have_units_and_conditions_constants(condition: str, expected: list[bool]) -> None:
    where = plan_of(f"SELECT gas FROM detectors WHERE {condition}").where
    columns = {
        "xpos": pa.array([979.0, 980.0]),
        "ok": pa.array([True, False]),
        "reading.level": pa.array([Decimal(2), Decimal(4)], DECIMAL),
    }
    assert passes(where, columns, 2).to_pylist() == expected


def test_a_column_may_be_called_true() -> None:
    statement = sensor_statements.parse("CREATE SENSORS answers (id INT, given STREAM (true BOOLEAN))")
    assert isinstance(statement, CreateSensors)
    plan = planned("SELECT true FROM answers WHERE true", {"answers": define(statement, "ada", 1)})
    assert plan is not None
    assert plan.sources is not None
    assert list(plan.sources.outputs[0].term.columns()) == ["given.true"]


@pytest.mark.parametrize(
    "condition",
    [
        "TRUE",
        "a.ok = TRUE AND b.ok = FALSE",
        "a.level > b.level + 1 ppm",
        "a.level - 1 ppm = b.level",
        "a.time - b.time BETWEEN 5 s AND 10 s",
        "abs(a.time - b.at) < 500 ms OR a.time > b.time + 5 s",
    ],
)
def test_a_join_takes_them_too(condition: str) -> None:
    assert plan_of(f"{PAIRS} WINDOW 1 min WHERE {condition}").join is not None


FIELDS = ["id", "xpos", "ok", "gas", "level", "at"]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM detectors a, detectors b WINDOW 1 s", [f"{of}.{name}" for of in "ab" for name in FIELDS]),
        ("SELECT b.*, a.gas FROM detectors a, detectors b WINDOW 1 s", [*(f"b.{name}" for name in FIELDS), "a.gas"]),
        ("SELECT A.* FROM detectors a LEFT JOIN detectors b ON b.gas = a.gas WINDOW 1 s", [f"a.{name}" for name in FIELDS]),
        ("SELECT d.*, d.level > 1 AS much FROM detectors d", [*FIELDS, "much"]),
        ("SELECT detectors.* FROM detectors", FIELDS),
        ("SELECT detectors.*, s.nodeid FROM detectors, sensors s WINDOW 1 s", [*(f"detectors.{name}" for name in FIELDS), "s.nodeid"]),
    ],
)  # fmt: skip
def test_a_star_may_be_of_one_table(sql: str, names: list[str]) -> None:
    assert [output.name for output in plan_of(sql).outputs] == names


def test_a_star_of_motes_has_what_they_report() -> None:
    both = plan_of("SELECT s.*, d.gas FROM sensors s, detectors d WINDOW 1 s").outputs
    assert {"s.nodeid", "s.temp", "s.light", "d.gas"} <= {output.name for output in both}
    assert next(output.unit for output in both if output.name == "s.temp") == "degC"


NOON = datetime(2002, 11, 6, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "expected", "unit"),
    [
        ("time - at", [2.5, None, -0.000001], "s"),
        ("abs(at - time)", [2.5, None, 0.000001], "s"),
        ("time - at > 2500 ms", [False, None, False], ""),
        ("time - at BETWEEN -1 s AND 1 min", [True, None, True], ""),
        ("1 min - (time - at)", [57.5, None, 60.000001], "s"),
        ("time - '2002-11-06 11:59:00' = 1 min", [True, True, True], ""),
        ("at + 2500 ms = time", [True, None, False], ""),
        ("1 h + time - 3600 = time", [True, True, True], ""),
        ("time > '2002-11-06 12:00:01' - 2 s", [True, True, True], ""),
        ("time + (1 min - 60 s) = time", [True, True, True], ""),
        ("time - 1 min", [NOON - timedelta(minutes=1)] * 3, ""),
        ("time + xpos / 1 - 1e17", [None, None, None], ""),
    ],
)
def test_times_are_subtracted(expression: str, expected: list[object], unit: str) -> None:
    [output] = plan_of(f"SELECT {expression} AS found FROM detectors").outputs
    at = [NOON - timedelta(seconds=2.5), None, NOON + timedelta(microseconds=1)]
    columns = {
        "_time": pa.array([NOON] * 3, MOMENT),
        "reading.at": pa.array(at, MOMENT),
        "xpos": pa.array([1.0] * 3),
    }
    assert evaluate(output.term, columns, 3).to_pylist() == expected
    assert output.unit == unit


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("time + time", "two times are added"),
        ("5 min - time", "a time less a length is a time, as in a.time - 5 min"),
        ("time - xpos", "a length of time is in s, and this is in m"),
        ("time + 5 ppm", "unit 'ppm' does not fit"),
        ("time - gas", "TEXT is no length of time"),
        ("time - 'noon'", "'noon' is no time"),
        ("time * 2", "a time is no number"),
        ("time - at = level", "s is compared with ppm"),
        ("e.*", "unknown table 'e'"),
    ],
)
def test_what_is_no_time_and_no_table_is_told(what: str, said: str) -> None:
    with pytest.raises(QueryError, match=re.escape(said)):
        plan_of(f"SELECT {what} FROM detectors")


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        (", detectors c WINDOW 1 h WHERE a.level > b.level + 1 V", "it is in ppm"),
        ("WINDOW 1 h WHERE a.time + b.id > b.time", "subtract the times, as in a.time - c.time < b.length"),
        ("WINDOW 1 h WHERE a.time - b.time > 5 ppm", "it is in s"),
        ("WINDWO 1 h WHERE a.gas = b.gas", "did you mean WINDOW?"),
        ("WINDOW 1 h WHERE a.gas = b.gas LATNESS 1 s", "did you mean LATENESS?"),
        ("WINDOW -1 s", "a window has a length, as in WINDOW 10 min, or WINDOW 5 ROWS"),
        ("WINDOW w", "a window has a length, as in WINDOW 10 min, or WINDOW 5 ROWS"),
        ("WINDOW 1 h LATENESS -1 s", "it is a length of time, as in LATENESS 30 s"),
        ("WINDOW 1 h WINDOW 2 h", "WINDOW is said twice"),
        ("WHERE a.gas = b.gas OR WINDOW = 1 h", "a window is no condition among others"),
        ("WHERE NOT WINDOW(a, b) = 1 h", "a window of two stands alone, or with AND"),
        ("CROSS JOIN detectors c WINDOW 1 h", "CROSS JOIN is no join here"),
        ("RIGHT JOIN detectors c ON c.gas = b.gas WINDOW 1 h", "RIGHT JOIN is no join here"),
        (
            "WHERE a.gas = b.gas",
            "no window bounds how far apart rows of a and of b may be: add one between them, such as WINDOW(a, b) = 10 min",
        ),
        (
            ", detectors c WINDOW(a, c) = 1 h",
            "rows of a and c and of b may be at column 64: add one between them, such as WINDOW(c, b) = 10 min",
        ),
        ("WINDOW(a, x) = 1 h", "'x' in WINDOW(a, x) is no alias of this join at column 50: they are a, b"),
        (
            ", detectros c WINDOW 1 h",
            "'detectros' is no table of sensors at column 46: did you mean 'detectors'?",
        ),
        (
            "WINDOW 1 h WHERE a.level < b.level USING HW",
            "b.item = c.item at column 85: leave USING out, or write USING MW",
        ),
        ("WINDOW > 1 h", "as in WINDOW 10 min, or WINDOW 5 ROWS"),
        (
            "WHERE WINDOW > 1",
            "a window is compared by > at column 50: write WINDOW = 10 min, which includes its ends",
        ),
        ("WINDOW 1 h WHERE ads(a.level) > 1", "did you mean 'abs'? there are ABS, HASH, DIST of numbers"),
    ],
)
def test_what_cannot_be_is_told(behind: str, said: str) -> None:
    with pytest.raises(QueryError, match=re.escape(said)):
        plan_of(f"{PAIRS} {behind}")


def test_a_table_without_a_stream_is_met_where_rows_come_or_answers_and_opens_nothing() -> None:
    statement = sensor_statements.parse("CREATE SENSORS limits (gas TEXT, most DOUBLE)")
    assert isinstance(statement, CreateSensors)
    tables = {"detectors": table(), "limits": define(statement, "ada", 2)}
    one = "SELECT d.gas FROM detectors AS d, limits AS l WHERE d.gas = l.gas AND d.level > l.most"
    for sql in (one, f"{PAIRS}, limits AS l WINDOW 1 h WHERE l.gas = a.gas"):
        plan = planned(sql, tables)
        assert plan is not None
        assert plan.sources is not None
        assert plan.sources.lookups is not None
        assert plan.sources.lookups.readings == ["sensors/limits"]
        assert {table for table, _ in plan.sources.chosen_of()} == {"detectors"}


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT gas FROM (SELECT gas FROM detectors)", "CREATE STREAM name AS SELECT … gives what one finds a name"),
        ("SELECT gas FROM detectors WHERE level > (SELECT 1)", "a query stands in no other one"),
        ("SELECT gas FROM detectors UNION SELECT gas FROM detectors", "a query stands in no other one"),
        ("SELECT symbol FROM PERIOD(detectors.gas, 24)", "did you mean PERIODS?"),
        ("SELECT periods(gas, 24) FROM detectors", "it is asked of a table, as in FROM PERIODS("),
        ("SELECT MAX(level) FROM detectors", "or ask of the newest rows (FROM LATEST), or of the past"),
        ("SELECT level FROM detectors ORDER BY level", "no end at which its rows could be sorted or counted"),
        ("SELECT level FROM detectors ONCE", "FROM LATEST detectors … ONCE asks of the newest row of each"),
        (
            "SELECT SUM(level, 1 min) AS total FROM detectors HAVING total > 3",
            "'total' in HAVING is no column at column 57: it is what a column is called: write SUM(level, 1 min) here, too",
        ),
    ],
)  # fmt: skip
def test_what_is_said_otherwise_here_is_told(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=re.escape(said)):
        plan_of(sql)
