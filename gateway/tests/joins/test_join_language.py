"""What users say of joins and of streams' fields: units in sums, TRUE and FALSE, and what is told of what cannot be."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
import pytest

from skerry.planner.model.source_plans import SourcePlan
from skerry.sensors.definitions import SensorTable, define
from skerry.sensors.evaluate import DECIMAL, passes
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
    ["TRUE", "a.ok = TRUE AND b.ok = FALSE", "a.level > b.level + 1 ppm", "a.level - 1 ppm = b.level"],
)
def test_a_join_takes_them_too(condition: str) -> None:
    assert plan_of(f"{PAIRS} WINDOW 1 min WHERE {condition}").join is not None


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        (", detectors c WINDOW 1 h WHERE a.level > b.level + 1 V", "it is in ppm"),
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
        ("WINDOW 1 h WHERE ads(a.level) > 1", "did you mean 'abs'? there are ABS, HASH, DIST of numbers"),
    ],
)
def test_what_cannot_be_is_told(behind: str, said: str) -> None:
    with pytest.raises(QueryError, match=re.escape(said)):
        plan_of(f"{PAIRS} {behind}")
