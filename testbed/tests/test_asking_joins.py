"""Runs that ask joins of motes' rows: where these are joined need not be said, and is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.tests.test_asking import rows_of
from testbed.tests.test_cli import run

pytestmark = pytest.mark.usefixtures("skerry_built")

#: 0 - 1 - 2 - 3 in a line, the last two in one room and on one rack.
NETWORK = """
seed = 4
attributes = ["rack"]
[radio]
model = "disc"
range_m = 12
[environment.fields]
temp = { base = 20.0, gradient = [0.1, 0.0] }
""" + "".join(
    f"[[mote]]\nid = {node}\nx = {10 * node}\ny = 0\n"
    + ("root = true\n" if node == 0 else "")
    + ("room = 5\n[mote.attributes]\nrack = 7\n" if node > 1 else "")
    for node in range(4)
)


def joined(same: str, more: str = "") -> str:
    return (
        "SELECT s.nodeid AS s, t.nodeid AS t, t.temp - s.temp AS warmer FROM sensors AS s, sensors AS t WINDOW 1 ROWS "
        f"WHERE s.{same} = t.{same} AND s.nodeid < t.nodeid AND s.epoch = t.epoch SAMPLE PERIOD 4 s{more}"
    )


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "network.toml"
    path.write_text(NETWORK)
    return path


@pytest.mark.parametrize("same", ["room", "rack"])
def test_a_join_that_does_not_say_where_is_joined_and_told_where(
    network: Path, tmp_path: Path, same: str
) -> None:
    rows, report = tmp_path / "rows.json", tmp_path / "report.json"
    done = run(
        network,
        "--speed",
        "max",
        "--for",
        "150s",
        "--query",
        joined(same),
        "--rows",
        rows,
        "--report",
        report,
    )
    assert done.returncode == 0, done.stderr
    found = rows_of(rows)["1"]
    assert {(row["s"], row["t"]) for row in found} == {(2, 3)}
    assert all(row["warmer"] == pytest.approx(1.0, abs=0.02) for row in found)
    assert len(found) >= 10
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert any("joined at base, as no two motes that the gateway knows are a pair" in note for note in notes)
    assert any(
        "joined at base: at the gateway, as all are joined at the base: 2 with 3" in note for note in notes
    )
    [asked] = json.loads(report.read_text())["asked"]
    assert asked["joined"]["kind"] == "at base"
    assert asked["joined"]["base"] == [{"pair": [2, 3], "why": "all are joined at the base"}]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (joined("room", " JOIN NAIVE"), "this run's gateway joins no rows by itself"),
        (joined("room").replace("WINDOW 1 ROWS", "WINDOW 9 ROWS"), "WINDOW 9 ROWS is too large for motes"),
        (joined("shelf"), "shelf"),
    ],
)
def test_what_neither_motes_nor_this_gateway_can_join_is_refused_by_name(
    network: Path, sql: str, why: str
) -> None:
    done = run(network, "--speed", "max", "--for", "20s", "--query", sql)
    assert done.returncode == 1
    assert why in done.stderr
