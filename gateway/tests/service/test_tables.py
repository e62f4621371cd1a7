"""A stream joined with a table through the daemon: the table changes, vanishes and comes back, over a restart too."""

from __future__ import annotations

import os
import sqlite3
import threading
from typing import Any

import pytest

import skerry
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, queue_rows, wait_for
from skerry_protocol import codec

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Reader:
    """Takes rows in a thread of its own, so that a pause can be told from an end."""

    def __init__(self, rows: Any) -> None:
        self.got: list[tuple[int, str]] = []
        self._rows = rows
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for row in self._rows:
                self.got.append((row["s.nodeid"], row["p.name"]))
        except skerry.GatewayError:
            return


def test_a_table_that_vanishes_pauses_only_those_who_use_it(peer: RootPeer, daemon: Daemon) -> None:
    tables = daemon.data / "tables"
    tables.mkdir(parents=True)
    places = tables / "places.csv"
    places.write_text("node,name\n1,lab\n1,den\n2,hall\n")
    # Files that cannot be used stand before it.
    (tables / "a.csv").write_text("node;name\n1;lab\n")
    (tables / "loop.csv").symlink_to("loop.csv")
    (tables / os.fsdecode(b"\xe4.csv")).write_text("node\n1\n")
    daemon.start()
    ada, grace = daemon.client("ada"), daemon.client("grace")
    assert [(t["name"], t["rows"], t["trouble"]) for t in ada.tables()] == [
        ("places", 3, None),
        ("a", None, "its columns are separated by semicolons: save it with commas"),
        ("loop", None, "Too many levels of symbolic links"),
        (r"\xe4", None, "its name is not UTF-8: rename it"),
    ]
    with pytest.raises(
        skerry.GatewayError, match="table a cannot be read at column 33: its columns are separated"
    ):
        ada.query("SELECT s.nodeid FROM sensors s, a WHERE a.node = s.nodeid SAMPLE PERIOD 1 s")
    sql = "SELECT s.nodeid, s.temp, p.name FROM sensors s, places p WHERE p.node = s.nodeid SAMPLE PERIOD 1 s"
    asked = ada.query(sql)
    plain = grace.query("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s")
    wait_for(peer.programs)
    wait_for(lambda: len(ada.status()["streams"]) == 1)
    [(query, program)] = peer.programs().items()
    first = codec.decode_program(program).start + 1
    reader = Reader(asked)
    queue_rows(peer, query, range(first, first + 2), program)
    twice = [(1, "lab"), (1, "den"), (2, "hall")] * 2
    wait_for(lambda: reader.got == twice)

    places.unlink()
    wait_for(lambda: "table places is not there" in str(ada.status()["paused"]))
    queue_rows(peer, query, range(first + 2, first + 4), program)
    assert [row["nodeid"] for _, row in zip(range(12), plain, strict=False)] == [1, 2, 3] * 4
    assert reader.got == twice
    described = {entry["id"]: entry["paused"] for entry in grace.queries()} | {
        e["id"]: e["paused"] for e in ada.queries()
    }
    assert "no file of" in described[asked.id]
    assert described[plain.id] is None
    with pytest.raises(skerry.GatewayError, match="unknown table 'places'"):
        ada.query(sql)

    daemon.kill()
    daemon.start()
    assert "table places is not there" in ada.status()["paused"][asked.id], "it waits over a restart"
    made = daemon.data / "site.sqlite"
    with sqlite3.connect(made) as connection:
        connection.execute("CREATE TABLE Places (node INTEGER, name TEXT)")
        connection.execute("INSERT INTO Places VALUES (2, 'roof')")
    connection.close()
    made.rename(tables / made.name)  # all at once: nobody sees the table while it is empty
    queue_rows(peer, query, range(first + 4, first + 5), program)
    wait_for(lambda: reader.got == [*twice, *[(2, "roof")] * 3])
    assert ada.status()["paused"] == {}

    # Whoever reads them later gets the same rows, also of the table that is long gone.
    again = Reader(ada.resume(asked.id))
    wait_for(lambda: again.got == reader.got)
