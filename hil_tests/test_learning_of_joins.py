"""A join of motes far from the root begins at the base, as nothing is known of it, and moves to a mote between them once it is counted how
seldom rows match: what its user has is what DuckDB joins over the motes' readings, no answer missing and none twice, and rows say which
mote has joined them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from testbed.tests.test_cli import run

pytestmark = [pytest.mark.usefixtures("skerry_built"), pytest.mark.slow]

JOIN = (
    "SELECT s.nodeid AS s, t.nodeid AS t, s.epoch AS e, t.epoch AS f, joined_at FROM sensors AS s, sensors AS t WINDOW 3 ROWS "
    "WHERE s.room = t.room AND s.nodeid < t.nodeid AND s.light > 150 AND s.temp - t.temp > 6 SAMPLE PERIOD 10 s "
    "COST BYTES JOIN AT BASE LEARNING"
)
READINGS = "SELECT nodeid, epoch, temp, light FROM sensors SAMPLE PERIOD 10 s"
#: 0 - 1 - 2 - 3 - 4, of which the last two are in one room.
LINE = """
seed = 4
[radio]
model = "disc"
range_m = 12
[environment.fields]
temp = { base = 20.0, amplitude = 3.0, period = "97 s", noise = 2.0 }
light = { base = 200.0, amplitude = 150.0, period = "70 s", noise = 60.0 }
""" + "".join(
    f"[[mote]]\nid = {node}\nx = {10 * node}\ny = 0\n"
    + ("root = true\n" if node == 0 else "room = 5\n" if node > 2 else "")
    for node in range(5)
)
#: Both rows among the last three that pass, up to the later one.
BY_DUCKDB = """
WITH s AS (SELECT *, row_number() OVER (PARTITION BY nodeid ORDER BY epoch) AS rank FROM readings WHERE light > 150),
     t AS (SELECT *, row_number() OVER (PARTITION BY nodeid ORDER BY epoch) AS rank FROM readings)
SELECT s.nodeid, s.epoch, t.nodeid, t.epoch FROM s, t
WHERE s.nodeid = 3 AND t.nodeid = 4 AND s.temp - t.temp > 6 AND CASE WHEN s.epoch <= t.epoch
THEN (SELECT count(*) FROM s AS x WHERE x.nodeid = s.nodeid AND x.epoch <= t.epoch) - s.rank < 3
ELSE (SELECT count(*) FROM t AS x WHERE x.nodeid = t.nodeid AND x.epoch <= s.epoch) - t.rank < 3 END
"""


def test_rows_that_hosts_join_are_counted_by_their_motes(tmp_path: Path) -> None:
    """What is assumed is near enough, so that it stays; how often light is above 150 lx is known of the readings."""
    network, rows, report = (tmp_path / name for name in ("line.toml", "rows.json", "report.json"))
    network.write_text(LINE)
    join = f"{JOIN} ON ESTIMATE s 55 %, t 100 %, pair 14 %".replace("> 6", "> 4")
    join = join.replace("AT BASE", "AT ANCESTOR")
    files = ["--rows", rows, "--report", report, "--query", join, "--query", READINGS]
    done = run(network, "--speed", "max", "--for", "1100s", *files)
    assert done.returncode == 0, done.stderr
    asked, _ = json.loads(report.read_text())["asked"]
    learning = asked["joined"]["learning"]
    assert learning["changes"] == [], "it stays"
    assert learning["epochs"] > 40
    assert asked["joined"]["base"] == []
    readings = [json.loads(line)["row"] for line in rows.read_text().splitlines() if '"query": "2"' in line]
    light = [row["light"] > 150 for row in readings if row["nodeid"] == 3]
    share = sum(light) / len(light)
    assert share > 0.6
    assert learning["counted"]["s"] == pytest.approx(share, abs=0.05), "of its own rows, not as was assumed"
    assert learning["counted"]["t"] == 1.0


def test_a_join_moves_into_the_network_and_loses_no_answer(tmp_path: Path) -> None:
    network, rows, report = (tmp_path / name for name in ("line.toml", "rows.json", "report.json"))
    network.write_text(
        LINE
        + "".join(
            f'[[query]]\nsql = "{sql}"\nat = "{at} s"\n'
            for sql, at in ((f"{JOIN} ON", 90), (READINGS, 91), (f"{JOIN} OFF", 92))
        )
    )
    files = ["--rows", rows, "--report", report]
    done = run(network, "--speed", "max", "--for", "1400s", *files)
    assert done.returncode == 0, done.stderr
    told: dict[str, list[dict[str, int]]] = {}
    for line in rows.read_text().splitlines():
        row = json.loads(line)
        told.setdefault(row["query"], []).append(row["row"])
    asked = {one["id"]: one for one in json.loads(report.read_text())["asked"]}
    assert len(asked["1"]["mote_queries"]) == 2, "it has moved, once"
    assert len(asked["3"]["mote_queries"]) == 1, "what learns nothing stays"
    readings = told["2"]
    first, last = (choose(row["epoch"] for row in readings) for choose in (min, max))
    with duckdb.connect(config={"threads": 1}) as database:
        database.register("readings", pa.Table.from_pylist(readings))
        wanted = Counter(database.execute(BY_DUCKDB).fetchall())

    def whole(answers: Counter[tuple[int, ...]]) -> Counter[tuple[int, ...]]:
        """Of epochs whose windows the readings hold, and that are over."""
        return Counter({row: n for row, n in answers.items() if first + 8 <= max(row[1], row[3]) <= last - 8})

    for query in ("1", "3"):
        had = Counter((row["s"], row["e"], row["t"], row["f"]) for row in told[query])
        assert whole(had) == whole(wanted), query
        assert whole(had).total() > 10
    by_epoch = sorted(told["1"], key=lambda row: max(row["e"], row["f"]))
    hosts = [row["joined_at"] for row in by_epoch]
    moved = hosts.index(3)
    assert hosts == [None] * moved + [3] * (len(hosts) - moved), "the lowest mote above both is 3 itself"
    assert min(moved, len(hosts) - moved) > 5
    assert {row["joined_at"] for row in told["3"]} == {None}, "what learns nothing stays at the gateway"
