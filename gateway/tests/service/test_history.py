"""The past through the daemon: HISTORY on into the live stream, compaction, and what has left the log."""

from __future__ import annotations

import csv
import io
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest

import skerry
from gateway.tests.peer import RootPeer
from gateway.tests.process import COMMAND, Daemon, ask, queue_rows, wait_for
from skerry_protocol import codec

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def taken(rows: Any, count: int) -> list[tuple[int, float]]:
    return [(row["nodeid"], row["temp"]) for _, row in zip(range(count), rows, strict=False)]


def expected(epochs: Any) -> list[tuple[int, float]]:
    return [(n, (2000 + e * 10 + n) / 100) for e in epochs for n in range(1, 4)]


def taken_windows(rows: Any, until: int) -> dict[tuple[int, int], tuple[int, float]]:
    """Windows by their last epoch and mote, as far as each of three motes has one that ends in epoch ``until`` - 1."""
    seen, stream = {}, iter(rows)
    while not all((until - 1, node) in seen for node in range(1, 4)):
        row = next(stream)
        seen[row["epoch"], row["nodeid"]] = row["n"], row["mean"]
    return seen


def test_history_goes_on_into_the_live_stream_without_gap_or_repeat(peer: RootPeer, daemon: Daemon) -> None:
    peer.began -= 1000
    daemon.start()
    ada, grace = daemon.client("ada"), daemon.client("grace")
    ada.query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s")
    wait_for(peer.programs)
    [(query, program)] = peer.programs().items()
    first = codec.decode_program(program).start + 1
    queue_rows(peer, query, range(first, first + 6), program)
    wait_for(lambda: not peer.waiting)
    assert ada.compact()["compacted"] == 18
    queue_rows(peer, query, range(first + 8, first + 12), program)
    wait_for(lambda: not peer.waiting)
    wait_for(lambda: grace.status()["network_time_s"] > first + 14)
    past = grace.query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s HISTORY 1 h")
    # Two epochs that were sampled before the query was asked come after it.
    queue_rows(peer, query, range(first + 6, first + 8), program)
    queue_rows(peer, query, range(first + 12, first + 40), program)
    order = [
        *range(first, first + 6),
        *range(first + 8, first + 12),
        *range(first + 6, first + 8),
        *range(first + 12, first + 64),
    ]
    got = taken(past, 40)
    assert got == expected(order)[:40]
    assert grace.status()["history"]["compacted"] == 18
    daemon.kill()
    daemon.start()
    assert grace.compact()["compacted"] > 0
    windows = "SELECT epoch, nodeid, revision, COUNT(*, 4 s) AS n, AVG(temp, 4 s) AS mean FROM sensors GROUP BY nodeid"
    rows = grace.query(f"{windows} SAMPLE PERIOD 1 s HISTORY 1 h")
    begin = -(-first // 4) * 4
    # Windows of the past that end 12 s before its last row come while the network is silent, later ones with rows that far behind.
    seen = taken_windows(rows, begin + 24)
    queue_rows(peer, query, range(first + 40, first + 64), program)
    seen |= taken_windows(rows, begin + 44)
    for end in range(begin + 4, begin + 48, 4):
        for node in range(1, 4):
            mean = sum(2000 + e * 10 + node for e in range(end - 4, end)) / 400
            assert seen[end - 1, node] == (4, pytest.approx(mean)), "on both sides, late ones too"
    grace.stop(rows.id)
    rest = taken(grace.resume(past.id, past.position), len(order) * 3 - 40)
    assert got + rest == expected(order)
    whole = taken(grace.resume(past.id), len(order) * 3)
    assert whole == expected(order), "from the beginning once more"
    assert len(peer.programs()) == 1, "nobody's coming has changed what motes do"

    summary = "SELECT nodeid, AVG(temp) AS mean, COUNT(*) AS n"
    only = subprocess.run(
        [COMMAND, "query", f"{summary} FROM sensors WHERE nodeid < 3 GROUP BY nodeid HISTORY 1 day ONLY",
         "--format", "csv", "--url", daemon.url],
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    compacted = subprocess.run(
        [COMMAND, "compact", "--url", daemon.url], capture_output=True, text=True, check=True
    )
    assert "files of" in compacted.stderr
    files = daemon.data / "history" / "sensors" / "*.parquet"
    want = duckdb.sql(
        f"SELECT nodeid, avg(temp), count(*) FROM '{files}' WHERE nodeid < 3 GROUP BY nodeid ORDER BY nodeid"
    ).fetchall()
    found = [
        (int(r["nodeid"]), float(r["mean"]), int(r["n"])) for r in csv.DictReader(io.StringIO(only.stdout))
    ]
    assert sorted(found) == [(node, pytest.approx(mean, abs=1e-5), n) for node, mean, n in want]
    ordered = duckdb.sql(f"SELECT nodeid, temp FROM '{files}' ORDER BY temp DESC, row LIMIT 7").fetchall()
    # In the order asked for, too.
    assert (
        taken(grace.query("SELECT nodeid, temp ORDER BY temp DESC LIMIT 7 HISTORY 1 day ONLY"), 8) == ordered
    )
    assert all(entry["id"] != "3" for entry in grace.queries()), "what has ended is not left behind"


def test_who_comes_back_too_late_is_told(peer: RootPeer, daemon: Daemon, tmp_path: Path) -> None:
    daemon.start()
    ada = daemon.client("ada")
    asked = ada.query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s")
    wait_for(peer.programs)
    [(query, program)] = peer.programs().items()
    first = codec.decode_program(program).start + 1
    queue_rows(peer, query, range(first, first + 10), program)
    wait_for(lambda: ada.status()["processed"] == 30)
    daemon.kill()
    # As if the segments had been full earlier.
    log = tmp_path / "data" / "log"
    whole = (log / f"{0:020d}.rows").read_bytes()
    width = len(whole) // 30
    for begin in (20, 10, 0):
        (log / f"{begin:020d}.rows").write_bytes(whole[begin * width : (begin + 10) * width])
    daemon.start("--keep-log-days", "0")
    assert ada.compact()["log_from"] == 0, "Spark has not said yet where it goes on"
    queue_rows(peer, query, range(first + 10, first + 11), program)
    wait_for(lambda: ada.status()["processed"] == 33)
    status = ada.compact()
    assert status["log_from"] == 20
    assert status["keep"]["log_days"] == 0
    epochs = range(first, first + 11)
    for after, lost in ((3, 4), (None, 0)):
        late = ada.resume(asked.id, after)
        with pytest.warns(
            skerry.RowsDroppedWarning, match=rf"rows {lost} to 19 .* the log no longer has them"
        ):
            assert taken(late, 13) == expected(epochs)[20:]
        assert [(dropped.first, dropped.last) for dropped in late.dropped] == [(lost, 19)]
    assert taken(ada.resume(asked.id, 19), 13) == expected(epochs)[20:]
    past = ada.query("SELECT nodeid, temp FROM sensors HISTORY 1 day ONLY")
    assert taken(past, 1000) == expected(epochs), "all of it is in the files"


def test_who_asks_for_the_past_is_told_which_file_of_it_is_damaged(peer: RootPeer, daemon: Daemon) -> None:
    daemon.start()
    ada = daemon.client("ada")
    _, query, program = ask(peer, daemon)
    first = codec.decode_program(program).start + 1
    queue_rows(peer, query, range(first, first + 4), program)
    wait_for(lambda: ada.status()["rows"] == 12)
    ada.compact()
    [file] = (daemon.data / "history" / "sensors").iterdir()
    whole = file.read_bytes()
    file.write_bytes(b"")
    asked = ada.query("SELECT nodeid, temp FROM sensors HISTORY 1 day ONLY")
    with ThreadPoolExecutor() as pool:
        got = pool.submit(taken, asked, 12)
        wait_for(lambda: str(file) in (ada.status()["paused"].get(asked.id) or ""))
        assert "put it back from a copy" in ada.status()["paused"][asked.id]
        queue_rows(peer, query, range(first + 4, first + 5), program)
        wait_for(lambda: ada.status()["rows"] == 15)
        with pytest.raises(skerry.GatewayError, match=str(file)):
            ada.compact()
        wait_for(lambda: any(str(file) in alarm["text"] for alarm in ada.status()["alarms"]))
        file.write_bytes(whole)
        assert got.result(60) == expected(range(first, first + 4))
    assert ada.compact()["compacted"] == 3
    assert ada.status()["paused"] == {}
    wait_for(lambda: ada.status()["alarms"] == [])
