"""What may be written, and what it means."""

from __future__ import annotations

from decimal import Decimal

import pytest

from skerry.expressions.expression import render
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.sql.ast import Once, SamplePeriod, Select, Stop, operands
from skerry.sql.parser import parse
from skerry.sql.units import duration_text
from skerry_protocol.attributes import ATTRIBUTES


def where(condition: str) -> str:
    plan = plan_query(f"SELECT nodeid FROM sensors WHERE {condition} SAMPLE PERIOD 1 s")
    assert isinstance(plan, QueryPlan)
    assert plan.where is not None
    return render(plan.where)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("temp > 1 + 2 * 3", "temp > 7"),
        ("temp > (1 + 2) * 3", "temp > 9"),
        ("temp > 10 - 3 - 2", "temp > 5"),
        ("temp > 7 / 2", "temp > 3.5"),
        ("temp > -7 % 4", "temp > -3"),
        ("25.5 < temp", "temp > 25.5"),
        ("temp != 3 AND NOT light = 1 OR level = 2", "((temp <> 3) AND NOT (light = 1)) OR (level = 2)"),
        ("level = 1 OR level = 2 AND level = 3", "(level = 1) OR ((level = 2) AND (level = 3))"),
        ("temp BETWEEN 1 AND 2 AND level = 1", "((temp >= 1) AND (temp <= 2)) AND (level = 1)"),
        ("nodeid NOT IN (1, 2)", "NOT ((nodeid = 1) OR (nodeid = 2))"),
        ("temp IS NOT NULL", "NOT temp IS NULL"),
        ("temperature > +25.5e0", "temp > 25.5"),
        ("voltage < 2700 mV", "voltage < 2.7"),
        ("light > 1 klx", "light > 1000"),
        ("light>1klx", "light > 1000"),
        ("humidity > 40 %RH", "humidity > 40"),
        ("humidity%7 > 3", "(humidity % 7) > 3"),
        ("accel_x > 500 mg", "accel_x > 0.5"),
        ("xpos < 150 cm", "xpos < 1.5"),
        ("temp > 25.5 °C", "temp > 25.5"),
        ("temp > light / (1 lx / 1 degC)", "temp > (light / 1)"),
        # Cut to what the sensor tells apart: no reading lies between.
        ("temp > 25.555", "temp > 25.55"),
        ("temp >= 25.555", "temp > 25.55"),
        ("temp < 25.555", "temp <= 25.55"),
        ("temp <= -25.555", "temp <= -25.56"),
        ("temp = 25.555", "temp = 25.555"),
        ("light > 99999999999", "light > 65536"),
    ],
)
def test_conditions(written: str, meant: str) -> None:
    assert where(written) == meant


def test_keywords_in_any_case_over_lines_with_comments() -> None:
    statement = parse("sElEcT temp as t -- the air\n\tfrom sensors\nsample PERIOD 1.5 min for 2 HOURS;")
    assert isinstance(statement, Select)
    assert statement.items[0].alias == "t"
    assert isinstance(statement.sampling, SamplePeriod)
    assert statement.sampling.period.milliseconds == 90_000
    assert statement.sampling.duration is not None
    assert statement.sampling.duration.milliseconds == 7_200_000


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [("1000 ms", 1000), ("2s", 2000), ("3 min", 180_000), ("1 h", 3_600_000), ("2 days", 172_800_000),
     ("1 week", 604_800_000), ("0.5 min", 30_000)],
)  # fmt: skip
def test_times(written: str, milliseconds: int) -> None:
    plan = plan_query(f"SELECT temp FROM sensors SAMPLE PERIOD {written}")
    assert isinstance(plan, QueryPlan)
    assert plan.period_ms == milliseconds


def test_durations_are_told_in_the_largest_whole_unit() -> None:
    assert [duration_text(ms) for ms in (1, 1500, 2000, 60_000, 86_400_000)] == [
        "1 ms", "1500 ms", "2 s", "1 min", "1 day",
    ]  # fmt: skip
    assert duration_text(Decimal("0.5")) == "0.5 ms"


def test_once_and_stop() -> None:
    once = parse("SELECT temp FROM sensors ONCE")
    assert isinstance(once, Select)
    assert isinstance(once.sampling, Once)
    stop = parse("stop query 12")
    assert isinstance(stop, Stop)
    assert stop.query == 12


def test_star_is_all_attributes() -> None:
    plan = plan_query("SELECT * FROM sensors SAMPLE PERIOD 10 s")
    assert isinstance(plan, QueryPlan)
    assert [output.name for output in plan.outputs] == [entry.name for entry in ATTRIBUTES]


def test_columns_are_named_as_written_or_by_as() -> None:
    plan = plan_query("SELECT temp  *  2, light AS l FROM sensors ONCE")
    assert isinstance(plan, QueryPlan)
    assert [(o.name, o.type, o.unit) for o in plan.outputs] == [
        ("temp * 2", "decimal", "degC"),
        ("l", "integer", "lx"),
    ]


def planned(text: str) -> QueryPlan:
    plan = plan_query(text)
    assert isinstance(plan, QueryPlan)
    return plan


@pytest.mark.parametrize(
    "written",
    [
        "SELECT nodeid, temp WHERE temp > 3 SAMPLE PERIOD 2.048",
        "select nodeid, temp where temp > 3 epoch duration 2048",
        "SELECT nodeid, temp EPOCH DURATION 2048 ms WHERE temp > 3",
        "SELECT nodeid, temp SAMPLE PERIOD 2.048 s WHERE temp > 3",
        "SELECT s.nodeid, s.temp EPOCH DURATION 2048 FROM sensors AS s WHERE s.temp > 3",
        "SELECT sensors.nodeid, temp FROM sensors s WHERE S.temperature > 3 Epoch\n Duration 2048;",
    ],
)
def test_the_dialect_that_tinydb_shipped_means_the_same(written: str) -> None:
    """No FROM, EPOCH DURATION, in milliseconds without a unit, clauses in any order, names with a table."""
    plan = planned(written)
    same = planned("SELECT nodeid, temp FROM sensors WHERE temp > 3 SAMPLE PERIOD 2048 ms")
    assert (plan.period_ms, plan.where) == (same.period_ms, same.where)
    assert [output.expr for output in plan.outputs] == [output.expr for output in same.outputs]


def test_for_without_a_unit_counts_sample_periods() -> None:
    assert planned("SELECT temp SAMPLE PERIOD 5 s FOR 12").duration_ms == 60_000
    assert planned("SELECT temp EPOCH DURATION 2000 FOR 10").duration_ms == 20_000


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("depth", "level"),
        ("freeram", "free_ram"),
        ("qlen", "queue_length"),
        ("temperature", "temp"),
        ("EPOCH", "epoch"),
    ],
)
def test_names_of_tinydbs_catalog(theirs: str, ours: str) -> None:
    assert planned(f"SELECT {theirs} AS x ONCE").outputs == planned(f"SELECT {ours} AS x ONCE").outputs


def test_drop_all() -> None:
    assert parse("drop all;") == Stop(None, "drop all;")


def test_having_is_of_aggregates_that_need_not_be_selected() -> None:
    plan = planned(
        "SELECT AVG(temp) FROM sensors HAVING MAX(light) - MIN(light) > 50 AND COUNT(*) >= 3 SAMPLE PERIOD 5 s"
    )
    assert plan.having is not None
    assert render(plan.having) == "((MAX(light) - MIN(light)) > 50) AND (COUNT(*) >= 3)"
    assert sorted(render(node) for node in plan.aggregates()) == [
        "AVG(temp)",
        "COUNT(*)",
        "MAX(light)",
        "MIN(light)",
    ]


def test_join_on_is_the_comma_and_where() -> None:
    texts = [
        "SELECT a.gas FROM d a JOIN d b ON a.gas = b.gas WINDOW 10 min INNER JOIN d AS c ON b.gas = c.gas WINDOW = 5 min WHERE a.id = 1",
        "SELECT a.gas FROM d a, d b, d c WINDOW(a, b) = 10 min AND WINDOW = 5 min "
        "WHERE a.gas = b.gas AND b.gas = c.gas AND a.id = 1",
    ]
    joined, plain = (parse(text, {"d"}) for text in texts)
    assert isinstance(joined, Select)
    assert isinstance(plain, Select)
    assert [table.called for table in joined.tables] == [table.called for table in plain.tables]
    assert [one.joined for one in joined.tables] == [None, None, None]
    windows = [
        [(one.pair and [name.name for name in one.pair], one.size.value) for one in found.windows]
        for found in (joined, plain)
    ]
    assert windows[0] == windows[1]
    assert joined.where is not None
    assert plain.where is not None
    said = [
        [joined.text[part.span.start : part.span.end] for part in operands(joined.where, "AND")],
        [plain.text[part.span.start : part.span.end] for part in operands(plain.where, "AND")],
    ]
    assert said[0] == said[1]
    with_tables = parse("SELECT s.temp FROM sensors s JOIN p ON p.node = s.nodeid SAMPLE PERIOD 1 s")
    assert isinstance(with_tables, Select)
    assert with_tables.where is not None
