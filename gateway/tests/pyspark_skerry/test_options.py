"""What may be asked for, and what is said of other things."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.tests.published import (
    Written,
    numbers,
    two_days,
)
from pyspark_skerry.options import reading_of
from pyspark_skerry.readers import LiveReader
from skerry.storage.state import DataError


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    made = two_days(tmp_path_factory.mktemp("data"))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "options stream and query are missing: give stream 'sensors'"),
        (
            {"stream": "sensors", "query": "1"},
            r"options stream \('sensors'\) and query \('1'\) are both given",
        ),
        ({"query": "9"}, "has no query 9: it has none"),
        ({"stream": "sensor"}, r"has no stream sensor: it has sensors \(a row for each.*stream-3 \(SUM"),
        ({"stream": "7"}, "has no stream 7: .*by their numbers 1, 2, 3"),
        ({"stream": "sensors", "startRow": "-1"}, "option startRow is '-1': give the number of a row"),
        ({"stream": "sensors", "startRow": "5000"}, "option startRow is 5000, and .* end before row 943"),
        ({"stream": "sensors", "startTime": "now"}, "option startTime is 'now': give UTC as 2026-11-21"),
        (
            {"stream": "sensors", "startTime": "2026-11-20", "endTime": "2026-11-19"},
            "option endTime is '2026-11-19', which is not after startTime '2026-11-20'",
        ),
        ({"stream": "sensors", "motes": "1;2"}, "option motes is '1;2', and '1;2' is no mote"),
        ({"stream": "stream-3", "motes": "1"}, "option motes is '1', and rows of stream stream-3 are of no mote"),
        ({"stream": "sensors", "columns": "temp,hum"}, "option columns has 'hum': there are row, root"),
        ({"stream": "sensors", "failOnDataLoss": "no"}, "option failOnDataLoss is 'no': give true or false"),
        ({"stream": "sensors", "maxRowsPerTrigger": "0"}, "option maxRowsPerTrigger is '0': give a number"),
        ({"stream": "sensors", "starttimes": "1"}, r"option starttimes \('1'\).*did you mean startTime\?"),
    ],
)  # fmt: skip
def test_options_that_are_wrong_are_named(written: Written, options: dict[str, str], said: str) -> None:
    given = {name.lower(): value for name, value in options.items()}
    with pytest.raises(DataError, match=said):
        LiveReader(reading_of({"data": str(written.data), **given}, None)).initialOffset()


def test_a_directory_that_is_damaged_is_named(written: Written, tmp_path: Path) -> None:
    for name in ("history/manifest.json", "published/streams.json", "clock.json"):
        shutil.copytree(written.data, tmp_path / "data", dirs_exist_ok=True)
        (tmp_path / "data" / name).write_text("{")
        with pytest.raises(DataError, match=f"data/{name} is not as the gateway wrote it"):
            numbers(tmp_path / "data")
        (tmp_path / "data" / name).unlink()


def test_nothing_is_written_and_the_gateway_may_run(written: Written) -> None:
    def files() -> dict[Path, tuple[int, int]]:
        found = [path for path in written.data.rglob("*") if path.is_file()]
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in found}

    before = files()
    assert len(numbers(written)) > 500
    assert files() == before
