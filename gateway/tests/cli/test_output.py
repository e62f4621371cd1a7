"""What the command line writes, for eyes and for programs."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from skerry.cli.output import Format, table, writer

ROWS = [
    {"id": "1", "finished": False, "sql": "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 10 s"},
    {"id": "20", "finished": None, "sql": "SELECT nodeid -- [bold]all[/] of [/them]"},
]


def test_a_table_in_a_pipe_is_a_whole_line_for_each_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    table(ROWS, ("id", "finished", "sql"))
    assert capsys.readouterr().out.splitlines() == [
        "id  finished  sql",
        "1   False     SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 10 s",
        "20            SELECT nodeid -- [bold]all[/] of [/them]",
    ]


@pytest.mark.parametrize("width", [20, 40, 60, 200])
def test_a_table_on_a_terminal_is_cut_off_nowhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    table(ROWS, ("id", "finished", "sql"))
    lines = capsys.readouterr().out.splitlines()
    said = " ".join(" ".join(lines).split())
    assert all(row["sql"] in said for row in ROWS)
    assert all(len(line) <= width for line in lines[1:]) or width < 32
    assert len(lines) == 3 or 32 <= width < 80


TOP = [
    {"name": "TOP(3, temp)", "unit": "degC", "digits": 2, "type": "list"},
    {"name": "COUNT(*)", "unit": "", "digits": 0, "type": "integer"},
]


def warmest(*values: float) -> list[dict[str, object]]:
    return [{"value": value, "nodeid": 10 * node} for node, value in enumerate(values, 1)]


def test_rows_with_long_lists_stay_below_their_headings(capsys: pytest.CaptureFixture[str]) -> None:
    write = writer(Format.TABLE, TOP)
    for count, values in enumerate(((25.5, 24.25, 3.0), (25.0,), (-25.5, -26.125, -130.0)), 1):
        write({"TOP(3, temp)": warmest(*values), "COUNT(*)": count})
    write({"TOP(3, temp)": None, "COUNT(*)": 0})
    assert capsys.readouterr().out.splitlines() == [
        "                 TOP(3, temp) (degC)  COUNT(*)",
        "------------------------------------  --------",
        "25.50 at 10, 24.25 at 20, 3.00 at 30         1",
        "                         25.00 at 10         2",
        "                      TOP(3, temp) (degC)  COUNT(*)",
        "-----------------------------------------  --------",
        "-25.50 at 10, -26.12 at 20, -130.00 at 30         3",
        "                                     NULL         0",
    ]


@pytest.mark.parametrize("width", [80, 40])
def test_lists_are_folded_on_a_terminal_that_is_too_narrow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write = writer(Format.TABLE, TOP)
    for count in (1, 2):
        write({"TOP(3, temp)": warmest(25.5, 24.25, 3.0), "COUNT(*)": count})
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width for line in lines)
    assert len({len(line) for line in lines if line.strip()[-1:] in "12-)"}) == 1
    assert len(lines) == (4 if width == 80 else 8)
    shown = " ".join(" ".join(lines).replace(",", " ").split())
    assert shown.count("25.50 at 10") == shown.count("3.00 at 30") == 2


def test_a_text_that_is_wider_than_the_column_has_its_heading_above_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write = writer(Format.TABLE, [{"name": "p.plot", "unit": "", "digits": 0, "type": "text"}])
    for text in ("north", "the southern field", "west"):
        write({"p.plot": text})
    assert capsys.readouterr().out.splitlines() == [
        "  p.plot", "--------", "   north",
        "            p.plot", "------------------", "the southern field",
        "              west",
    ]  # fmt: skip


MOMENT = datetime(2026, 11, 27, 3, 35, 6, 250_000, UTC)
COLUMNS = [
    {"name": "time", "unit": "", "digits": 3, "type": "timestamp"},
    {"name": "n", "unit": "", "digits": 0, "type": "integer"},
]


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "2026-11-27 03:35:06.250+00:00"),
        ("Europe/Berlin", "2026-11-27 04:35:06.250+01:00"),
        ("Asia/Kathmandu", "2026-11-27 09:20:06.250+05:45"),
    ],
)
def test_a_table_shows_moments_in_the_readers_zone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, zone: str, shown: str
) -> None:
    write = writer(Format.TABLE, COLUMNS, ZoneInfo(zone))
    write({"time": MOMENT, "n": 3})
    write({"time": None, "n": 4})
    heading, line, row, unknown = capsys.readouterr().out.splitlines()
    assert heading.split() == ["time", "n"]
    assert row.split("  ", 1)[0] == shown
    assert unknown.split() == ["NULL", "4"]
    assert len({len(heading), len(line), len(row), len(unknown)}) == 1
    # Where no zone is said, it is this machine's.
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        writer(Format.TABLE, COLUMNS)({"time": MOMENT, "n": 3})
    finally:
        monkeypatch.undo()
        time.tzset()
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize("format", [Format.CSV, Format.JSON])
def test_programs_are_told_moments_in_utc(capsys: pytest.CaptureFixture[str], format: Format) -> None:
    writer(format, COLUMNS, ZoneInfo("Europe/Berlin"))({"time": MOMENT, "n": 3})
    assert "2026-11-27T03:35:06.250Z" in capsys.readouterr().out.splitlines()[-1]


def test_lists_in_csv_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"nodeid": 3, "top": [{"nodeid": 3, "value": 24.5}], "bins": [1, 0, None], "temp": None}
    writer(Format.CSV, [{"name": name} for name in row])(row)
    heading, written = csv.reader(io.StringIO(capsys.readouterr().out))
    assert heading == list(row)
    assert (written[0], written[3]) == ("3", "")
    assert [json.loads(written[1]), json.loads(written[2])] == [row["top"], row["bins"]]
