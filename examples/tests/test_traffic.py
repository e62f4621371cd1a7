"""The traffic example, but for its gateway, whose joins have tests of their own."""

from __future__ import annotations

import csv
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from examples.shown_state import line
from examples.traffic.__main__ import Spread, expected, stations

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
    noon, pairs = datetime(2018, 4, 4, 12, tzinfo=UTC), Spread()
    for by in (5, -10, 5):
        pairs.add({"first": noon, "second": noon + timedelta(minutes=by), "slow": 20, "slower": 30})
    assert pairs.found == {5: 2, -10: 1}
    assert str(pairs) == "3 pairs: 20 mph here, 30 mph there +5 min"


def test_what_is_to_come_is_counted_over_the_stations_files(tmp_path: Path) -> None:
    for station, speeds in ((1, {0: 20, 5: 50, 10: 44}), (2, {0: 45, 5: 10, 30: 12})):
        lines = [f"2018-04-04 12:{minute:02}:00,5,0.1,{speed}" for minute, speed in speeds.items()]
        (tmp_path / f"{station}.csv").write_text("\n".join(["at,flow,occupancy,speed", *lines, ""]))
    assert expected(tmp_path, 1, 2, 20, 45) == {5: 1, -5: 1, 20: 1}


def test_a_joins_state_is_a_line_once_it_has_rows() -> None:
    joined = {
        "algorithm": "HW",
        "rows": 12,
        "bytes": 3_400_000,
        "late": 0,
        "greatest_us": {"a": None, "b": None},
    }
    assert line(joined) is None
    noon = round(datetime(2018, 4, 4, 12, tzinfo=UTC).timestamp() * 1e6)
    said = line({**joined, "greatest_us": {"a": None, "b": noon}, "late": 2})
    assert said == "04 Apr 2018 12:00  HW keeps 12 rows, 3.4 MB, 2 late"


def test_missing_records_are_told_with_what_to_put_where(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.traffic", "--data", str(tmp_path / "none.csv")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert f"{tmp_path / 'none.csv'} is not there. Put the records" in said.stderr
