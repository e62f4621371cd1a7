"""Runs that ask their network: rows, trees and yields, without Python and without another gateway."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from testbed.tests.descriptions import ROOT
from testbed.tests.test_cli import run

pytestmark = pytest.mark.usefixtures("skerry_built")

#: 20 °C at the root, a degree more for each 10 m.
LINE = f"""
seed = 4
{ROOT}
[environment.fields]
temp = {{ base = 20.0, gradient = [0.1, 0.0] }}
""" + "".join(f"[[mote]]\nid = {node}\nx = {10 * node}\ny = 0\n" for node in (1, 2, 3))
PLAIN = "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 4 s"
PARENTS = [(0, 0, None), (1, 1, 0), (2, 2, 1), (3, 3, 2)]


@pytest.fixture
def line(tmp_path: Path) -> Path:
    path = tmp_path / "line.toml"
    path.write_text(LINE)
    return path


def rows_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for text in path.read_text().splitlines():
        told = json.loads(text)
        found.setdefault(told["query"], []).append(told["row"])
    return found


def trees(report: dict[str, Any]) -> list[tuple[int, int | None, int | None]]:
    return [(mote["node"], mote["level"], mote["parent"]) for mote in report["motes"]]


def test_a_report_tells_of_trees_where_no_gateway_is(line: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    assert run(line, "--speed", "max", "--for", "60s", "--port", 0, "--report", report).returncode == 0
    told = json.loads(report.read_text())
    assert trees(told) == PARENTS
    assert "asked" not in told


def test_queries_of_description_and_command_line_get_rows_and_repeat_to_the_bit(
    line: Path, tmp_path: Path
) -> None:
    line.write_text(f"""
tables = "plots"
{LINE}
[[query]]
sql = "{PLAIN}"
at = "20 s"
until = "70 s"
user = "ada"
[[query]]
sql = "SELECT s.nodeid AS nodeid, p.plot AS plot FROM sensors AS s, plots AS p WHERE s.nodeid = p.nodeid SAMPLE PERIOD 4 s FOR 20 s"
at = "20 s"
""")
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "plots.csv").write_text("nodeid,plot\n1,north\n3,south\n")
    windowed = "SELECT COUNT(*) AS n, AVG(temp) FROM sensors SAMPLE PERIOD 4 s"
    for name in ("a", "b"):
        files = [f"--{kind}={tmp_path / name}.{kind}" for kind in ("rows", "report", "pcap")]
        # Another pace is the same run.
        pace = "max" if name == "a" else "40"
        done = run(line, "--speed", pace, "--for", "90s", "--query", windowed, *files)
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
        assert "4 motes, seed 4; 3 queries, asked by this run's own gateway" in done.stderr
    for kind in ("rows", "report", "pcap"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    told, rows = json.loads((tmp_path / "a.report").read_text()), rows_of(tmp_path / "a.rows")
    assert trees(told) == PARENTS
    asked = {one["user"] + one["id"]: one for one in told["asked"]}
    by_sql = {one["sql"]: one for one in told["asked"]}
    plain, joined, counted = by_sql[PLAIN], told["asked"][2], by_sql[windowed]
    assert set(asked) == {"testbed1", "ada2", "testbed3"}
    assert (plain["asked_s"], plain["stopped"], plain["refused"], plain["paused"]) == (20.0, True, [], None)
    assert plain["first_row_s"] >= 20
    assert plain["last_row_s"] <= 70.1
    assert joined["finished"]
    for one in told["asked"]:
        assert one["rows"] == len(rows[one["id"]]) > 0
        assert one["mote_queries"]
        assert one["yield"] == 1.0
    # By DuckDB over the plain rows: what motes measured, and who is in which plot.
    table = rows[plain["id"]]
    found = duckdb.sql(
        "SELECT node, min(temp), max(temp) FROM (VALUES "
        + ", ".join(f"({row['nodeid']}, {row['temp']})" for row in table)
        + ") AS t(node, temp) GROUP BY node ORDER BY node"
    ).fetchall()
    assert [node for node, _, _ in found] == [0, 1, 2, 3]
    for node, low, high in found:
        assert (float(low), float(high)) == (pytest.approx(20 + node, abs=0.4),) * 2
    assert {(row["nodeid"], row["plot"]) for row in rows[joined["id"]]} == {(1, "north"), (3, "south")}
    assert {row["n"] for row in rows[counted["id"]][2:]} == {4}


def test_rows_go_to_standard_output_where_no_file_is_named(line: Path) -> None:
    done = run(line, "--speed", "max", "--for", "40s", "--query", PLAIN)
    assert done.returncode == 0, done.stderr
    told = [json.loads(text) for text in done.stdout.splitlines()]
    assert {row["row"]["nodeid"] for row in told} == {0, 1, 2, 3}
    assert [row["at"] for row in told] == sorted(row["at"] for row in told)


@pytest.mark.parametrize(
    ("options", "code", "expected"),
    [
        (
            ["--query", "SELECT tmp FROM sensors"],
            1,
            "skerry: unknown attribute 'tmp' at column 8: did you mean 'temp'?",
        ),
        (["--query", PLAIN, "--port", "0"], 2, "the root's line is taken"),
        (["--rows", "r.jsonl"], 2, "there are no queries"),
        (["--query", " "], 1, "query.sql = ' ': expected a query"),
        (["--query", PLAIN, "--rows", "/dev/full"], 1, "/dev/full: No space left on device"),
        (["--query", PLAIN, "--rows", "/nonexistent/r"], 1, "/nonexistent/r: No such file or directory"),
    ],
)
def test_what_cannot_be_asked_is_said(
    line: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], code: int, expected: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    failed = run(line, "--speed", "max", "--for", "60s", *options)
    assert (failed.returncode, failed.stdout) == (code, "")
    assert expected in failed.stderr
    assert "Traceback" not in failed.stderr


def test_what_is_refused_only_when_it_is_asked_ends_the_run(line: Path) -> None:
    point = "CREATE STORAGE POINT kept SIZE 8 AS (SELECT temp FROM sensors SAMPLE PERIOD 4 s)"
    failed = run(
        line, "--speed", "max", "--for", "60s", "--query", point, "--query", "SELECT light FROM kept"
    )
    assert failed.returncode == 1
    assert "kept" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_join_with_a_storage_point_has_a_row_for_each_epoch(line: Path, tmp_path: Path) -> None:
    """Aggregates of such a join keep the rule of all aggregates: one row an epoch, in their order, of all motes."""
    rows = tmp_path / "rows.jsonl"
    done = run(
        line, "--speed", "max", "--for", "160s", "--rows", rows,
        "--query", "CREATE STORAGE POINT kept SIZE 8 AS (SELECT temp FROM sensors SAMPLE PERIOD 4 s)",
        "--query",
        "SELECT epoch, motes, COUNT(*) AS n, MAX(k.temp) AS most FROM sensors AS s, kept AS k "
        "WHERE s.temp <= k.temp SAMPLE PERIOD 4 s",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (found,) = rows_of(rows).values()
    epochs = [row["epoch"] for row in found]
    assert epochs == list(range(epochs[0], epochs[0] + len(epochs)))
    assert len(epochs) > 20
    # Four motes see the same temperature all the time, and keep eight rows of it.
    assert [(row["motes"], row["n"]) for row in found[-10:]] == [(4, 32)] * 10
    assert {row["most"] for row in found[-10:]} == {23.0}


def test_a_description_keeps_its_queries_for_whoever_wants_them(line: Path) -> None:
    line.write_text(f'{LINE}[[query]]\nsql = "{PLAIN}"\nat = "50 s"\n')
    done = run(line, "--speed", "max", "--for", "20s", "--no-queries", "--port", 0)
    assert done.returncode == 0
    assert "socket://127.0.0.1:" in done.stderr
    done = run(line, "--speed", "max", "--for", "20s")
    assert "query[0] at '50 s' never happens: the run ends at 20 s" in done.stderr
    line.write_text(f'{LINE}[[query]]\nsql = "{PLAIN}"\nat = "50 s"\nuntil = "40 s"\n')
    assert "query.until = '40 s': expected a time after at = '50 s'" in run(line).stderr
