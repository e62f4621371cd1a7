"""The retail example, but for its gateway, whose joins have tests of their own."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from examples.retail.stores import CREATE, answers, as_answer, deal, join
from skerry.sensors.planning import planned
from skerry.sensors.store import SensorStore
from skerry.sql import sensor_statements

ROOT = Path(__file__).resolve().parents[2]
NOON = datetime(2010, 12, 1, 12)


def sales(path: Path) -> int:
    """Ten invoices a minute apart with the same item, and others that nobody asks for; how many are the United Kingdom's."""
    rows = [
        (f"{number}", "22423", 1 if number else -1, NOON + timedelta(minutes=number), "United Kingdom")
        for number in range(10)
    ]
    rows += [
        ("77", "22423", 1, NOON, "France"),
        ("78", "22423", 1, NOON + timedelta(days=5), "United Kingdom"),
    ]
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE sales (invoice VARCHAR, item VARCHAR, quantity BIGINT, time TIMESTAMP, country VARCHAR)"
        )
        database.executemany("INSERT INTO sales VALUES (?, ?, ?, ?, ?)", rows)
        database.execute(
            f"COPY (SELECT *, 1.5 AS unit_price, 7 AS customer FROM sales) TO '{path}' (FORMAT parquet)"
        )
    return 10


def test_sales_are_dealt_by_invoice_and_joined_within_minutes(tmp_path: Path) -> None:
    count = sales(tmp_path / "retail.parquet")
    assert deal(tmp_path / "retail.parquet", tmp_path / "streams", 2, 3) == count
    of = [
        {
            at.minute
            for (at,) in duckdb.sql(
                f"SELECT sales.at FROM '{tmp_path}/streams/{store}.parquet' AS sales WHERE quantity > 0"
            ).fetchall()
        }
        for store in (1, 2)
    ]
    assert of[0] | of[1] == set(range(1, 10))
    assert not of[0] & of[1]
    found = answers(tmp_path / "streams", 2, 3)
    near = {(one, other) for one in of[0] for other in of[1] if abs(one - other) <= 3}
    assert {(row[1].minute, row[4].minute) for row in found} == near
    assert found.total() == len(near)
    assert as_answer({"item": "x", "a_at": NOON.replace(tzinfo=UTC), "a_sold": 2}) == ("x", NOON, 2)


def test_the_question_is_one_that_the_planner_takes() -> None:
    store = SensorStore()
    store.run(sensor_statements.parse(CREATE), "ada", Path(), CREATE)
    plan = planned(join(4, 60), store.tables())
    assert plan is not None
    assert plan.sources is not None
    assert plan.sources.join is not None
    assert plan.sources.join.algorithm == "HW"
    assert [output.name for output in plan.sources.outputs][:4] == ["item", "a_at", "a_invoice", "a_sold"]


def test_missing_sales_are_told_with_what_to_put_where(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.retail", "--data", str(tmp_path / "none.parquet")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert f"{tmp_path / 'none.parquet'} is not there. Put an online shop's sales" in said.stderr
