"""Window joins on a real Spark whose processes are killed: each answer comes once, as DuckDB has it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from gateway.tests.joins.drawn import Case, admitted, draw, expected, listed
from gateway.tests.joins.spark_process import END, algorithm_of
from skerry.joins.executor import merged

ROOT = Path(__file__).resolve().parents[3]


def by_key(case: Case) -> bool:
    """By hash, over several buckets."""
    return algorithm_of(case) == "HW" and not case.join.graph.has_rows


def by_time(case: Case) -> bool:
    """By panes of time, rows copied to neighbours."""
    return algorithm_of(case) == "MW" and not case.join.graph.has_rows


def by_rows(case: Case) -> bool:
    """With windows of rows."""
    return case.join.graph.has_rows


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "killed"), [(by_key, 2), (by_time, 1), (by_rows, 1)])
def test_answers_come_once_whatever_is_killed(
    kind: Callable[[Case], bool], killed: int, tmp_path: Path, drawn_seed: int
) -> None:
    connection = duckdb.connect()
    seed = next(
        seed for seed in range(drawn_seed, drawn_seed + 10_000) if _suits(draw(seed), kind, connection)
    )
    print(f"seed {seed}")
    case, chance = draw(seed), random.Random(seed)
    kills = 0
    while not (tmp_path / END).exists():
        with subprocess.Popen(
            [sys.executable, "-m", "gateway.tests.joins.spark_process", str(tmp_path), str(seed)],
            cwd=ROOT, start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        ) as process:  # fmt: skip
            until = _batches(tmp_path) + chance.randint(1, 2)
            while process.poll() is None and (kills >= killed or _batches(tmp_path) < until):
                time.sleep(0.05)
            if process.poll() is None:
                kills += 1
                os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode in (0, -signal.SIGKILL)
    assert kills == killed
    blocks, last = [], {}
    for path in sorted((tmp_path / "answers").glob("*.arrow")):
        batch = pa.ipc.open_stream(path.read_bytes()).read_all().to_pylist()
        blocks += [row["block"] for row in batch if row["join"]]
        last = {row["bucket"]: row for row in batch if not row["join"]}
    found = merged(blocks, case.join.aliases, by_time=case.join.graph.has_rows)
    assert found is not None
    assert listed(found) == expected(case, connection)
    _, late, ahead = admitted(case)
    assert (sum(row["late"] for row in last.values()), sum(row["ahead"] for row in last.values())) == (
        late,
        ahead,
    )
    # Progress reached all buckets, those without rows, too.
    assert len({row["progress"] for row in last.values()}) == 1


def _batches(directory: Path) -> int:
    return len(list((directory / "answers").glob("*.arrow")))


def _suits(case: Case, kind: Callable[[Case], bool], connection: duckdb.DuckDBPyConnection) -> bool:
    return kind(case) and len(case.join.aliases) > 2 and 50 < len(expected(case, connection)) < 5000
