"""The traffic example, but for its gateway, whose joins have tests of their own."""

from __future__ import annotations

import csv
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from examples.traffic.__main__ import spread, stations

ROOT = Path(__file__).resolve().parents[2]
NAMES = "timestamp", "station", "percentObs", "flow", "occupancy", "speed"


def test_each_station_that_measures_has_a_file(tmp_path: Path) -> None:
    rows = [
        ["2018-04-04 00:00:00", 1, 100, 5, 0.1, 60],
        ["2018-04-04 00:00:00", 2, 0, 9, 0.2, 50],
        ["2018-04-04 00:05:00", 1, 90, 6, 0.1, 40],
    ]
    with (tmp_path / "road.csv").open("w", newline="") as opened:
        csv.writer(opened).writerows([NAMES, *rows])
    assert stations(tmp_path / "road.csv", tmp_path / "streams") == [1]
    written = (tmp_path / "streams" / "1.csv").read_text().split()
    assert written == [
        "at,flow,occupancy,speed",
        "2018-04-04",
        "00:00:00,5,0.1,60",
        "2018-04-04",
        "00:05:00,6,0.1,40",
    ]


def test_pairs_are_counted_by_their_distance() -> None:
    noon = datetime(2018, 4, 4, 12, tzinfo=UTC)
    rows = [
        {"first": noon, "second": noon + timedelta(minutes=by), "slow": 20, "slower": 30}
        for by in (5, -10, 5)
    ]
    assert spread(rows) == {5: 2, -10: 1}


def test_missing_records_are_told_with_what_to_put_where(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.traffic", "--data", str(tmp_path / "none.csv")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert f"{tmp_path / 'none.csv'} is not there. Put the records" in said.stderr
