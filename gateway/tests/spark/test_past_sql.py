"""What the past's engine asks DuckDB, Spark SQL answers alike: one tree, two dialects, drawn questions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession
from sqlglot import exp

from gateway.tests.pasts import plain_records, plan_of, shuffled, stream_of
from gateway.tests.spark.sessions import users_session
from skerry.planner.model.plans import QueryPlan
from skerry.spark.past import frame_of
from skerry.storage.history.engine.messages import Timing
from skerry.storage.history.engine.selects import (
    Range,
    columns_needed,
    group_selects,
    ordered_select,
    rows_select,
)
from skerry.storage.history.engine.sources import cluster_past, cluster_readings, open_past, open_readings
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.stream_log import StreamLog

pytestmark = pytest.mark.spark

SEED = 20261127
QUESTIONS = 8
_VALUES = (
    "temp", "light", "temp * light", "light / temp", "temp + temp / 7", "-light % 7", "voltage * temp / 3", "nodeid", "xpos",
)  # fmt: skip
_WHERES = (
    "", "WHERE temp > 20.5", "WHERE light / temp < 3 AND nodeid <> 2", "WHERE NOT (voltage > 2.5 OR light < 100)",
    "WHERE temp IS NULL OR light = 77 OR temp < temp / 7", "WHERE temp <= -1.25",
)  # fmt: skip
_AGGREGATES = ("SUM", "AVG", "MIN", "MAX", "COUNT", "MEDIAN", "VARIANCE", "STDDEV")
_GROUPS = ("", "GROUP BY nodeid", "GROUP BY level, light > 4000", "GROUP BY level % 3")
_SPEEDS = (Timing(), Timing(True), Timing(True, 3.7), Timing(False, 0.3))


def drawn(rng: random.Random) -> str:
    """A question: rows, rows in order, or groups, each as recorded or by epochs."""
    values = rng.sample(_VALUES, 2)
    columns = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
    rest = f"FROM sensors {rng.choice(_WHERES)}"
    period = rng.choice(["", "SAMPLE PERIOD 30 s"])
    match rng.randrange(3):
        case 0:
            return f"SELECT nodeid AS n, time, {columns} {rest} HISTORY 7 day ONLY {period}"
        case 1:
            return f"SELECT nodeid AS n, {values[0]} AS v {rest} ORDER BY {values[1]} DESC, temp LIMIT 50 HISTORY 7 day ONLY {period}"
    made = ", ".join(f"{rng.choice(_AGGREGATES)}({value}) AS c{i}" for i, value in enumerate(values))
    when = "time, motes, " if period else ""
    return f"SELECT {when}{made}, COUNT(*) AS n {rest} {rng.choice(_GROUPS)} HISTORY 7 day ONLY {period}"


def selects(plan: QueryPlan, end: int, timing: Timing) -> list[exp.Select]:
    if plan.aggregate:
        found = group_selects(plan, end, timing)
        return [found.groups, *([found.motes] if found.motes else []), *found.values.values()]
    if plan.order is not None:
        return [ordered_select(plan, end, plan.order.limit or 0, timing)]
    return [rows_select(plan, Range(100, end - 30), end, timing)]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = users_session(tmp_path_factory.mktemp("user"))
    yield session
    session.stop()


def test_both_answer_alike(spark: SparkSession, tmp_path: Path) -> None:
    streams = [
        stream_of(1, "SELECT temp, light, level, voltage FROM sensors SAMPLE PERIOD 5 s", 0, 600_000),
        stream_of(2, "SELECT temp, light, level FROM sensors SAMPLE PERIOD 2 s", 600_001, session=1),
        stream_of(3, "SELECT temp, light, voltage FROM sensors SAMPLE PERIOD 7 s", 0, session=2),
    ]
    parts = [plain_records(stream, range(20, 320), [1, 2, 3], seed=stream.number) for stream in streams]
    log, history = StreamLog(tmp_path), History(tmp_path)
    log.append(shuffled(parts))
    history.compact(log.path, log.rows - 200, streams)
    rng = random.Random(SEED)
    with duckdb.connect() as connection:
        for number in range(QUESTIONS):
            sql, timing = drawn(rng), rng.choice(_SPEEDS)
            plan = plan_of(sql)
            sources = Reader(history, log.path, streams, plan.attributes, 0).sources(log.rows)
            names = columns_needed(plan)
            open_past(connection, sources, names)
            relations = {"past": cluster_past(sources, names, tmp_path / "newest.parquet")}
            open_readings(connection, sources, names, plan.period_ms)
            relations |= cluster_readings(sources, names, plan.period_ms, tmp_path / "newest.parquet")
            for name, parts in relations.items():
                frame_of(spark, parts).createOrReplaceTempView(name)
            for select in selects(plan, log.rows, timing):
                wanted = values(connection.sql(select.sql("duckdb")).fetchall())
                got = values(tuple(row) for row in spark.sql(select.sql("spark")).collect())
                if plan.order is None:
                    wanted, got = sorted(wanted), sorted(got)
                assert got == wanted, (
                    f"seed {SEED}, question {number}: {sql} ({timing})\n{select.sql('spark')}"
                )


def values(rows: Any) -> list[tuple[str, ...]]:
    """Rows whose NULLs can be sorted, too."""
    return [tuple("" if value is None else str(value) for value in row) for row in rows]
