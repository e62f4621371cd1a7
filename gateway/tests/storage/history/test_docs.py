"""What docs/history.md shows runs, over a history as a gateway leaves it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gateway.tests.pasts import plain_records, plan_of, stream_of
from skerry.storage.history.store import History
from skerry.storage.log.stream_log import StreamLog

TEXT = (Path(__file__).parents[4] / "docs" / "history.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
QUERIES = re.findall(r"^    (SELECT .* FROM sensors .*)$", TEXT, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("docs")
    data = root / "data"
    data.mkdir()
    plain = stream_of(1, "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 5 s")
    average = stream_of(2, "SELECT AVG(temp) FROM sensors SAMPLE PERIOD 30 s")
    # Of other columns: DuckDB reads no files together that differ in them.
    count = stream_of(3, "SELECT COUNT(*), MAX(light) FROM sensors SAMPLE PERIOD 30 s")
    late = plain_records(average, range(3, 5), [0], seed=9)
    late["revision"] = 1
    log, history = StreamLog(data), History(data)
    records = [plain_records(plain, range(300), [1, 2, 3]), plain_records(average, range(50), [0]), late]
    records.append(plain_records(count, range(50), [0]))
    log.append(np.concatenate(records))
    history.compact(log.path, log.rows, [plain, average, count])
    return root


@pytest.mark.parametrize(("number", "said"), [(0, "readings"), (1, "\n49 "), (2, "nodeid"), (3, "degC")])
def test_examples_run(directory: Path, number: int, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[number]], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert "\n50 " not in done.stdout, "two of the 52 rows are older revisions"


def test_no_example_is_left_out() -> None:
    assert len(EXAMPLES) == 4
    assert len(QUERIES) == 6, QUERIES
    assert all(plan_of(sql).history is not None for sql in QUERIES)
