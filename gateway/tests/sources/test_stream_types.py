"""Types of streams against what they are for: real files, a real web server, a type of one's own."""

from __future__ import annotations

import http.server
import json
import os
import pty
import threading
import tty
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from gateway.tests.sources.line_server import LineServer
from gateway.tests.sources.one_source import come, one_source, rows, state
from skerry.service.queries import UserQuery
from skerry.sources.opening import Opener
from skerry.sources.stream_type import AddressError, Sensor, types


def test_a_file_that_grows_also_when_it_is_replaced(peer: RootPeer, tmp_path: Path) -> None:
    folder = tmp_path / "streams"
    folder.mkdir()
    file = folder / "rain.csv"
    file.write_text("0.5,harbour,2002-11-06T12:00:00Z\n")
    with one_source(peer, tmp_path, "file:rain.csv?format=csv&from=start") as (gateway, query):
        assert come(gateway, query, 1)[0][:3] == (1, 0.5, "harbour")
        with file.open("a") as growing:
            growing.write('1.5,"hill, north",\n2')
            growing.flush()
            assert come(gateway, query, 2)[1][:3] == (1, 1.5, "hill, north")
            growing.write(".5,,\nrain,,\n")
        assert come(gateway, query, 3)[2][:3] == (1, 2.5, None)
        (folder / "new").write_text("7,new,\n")
        (folder / "new").rename(file)
        assert come(gateway, query, 4)[3][:3] == (1, 7.0, "new")
        file.unlink()
        wait_for(lambda: state(gateway)["state"] == "away")
        assert "No such file" in state(gateway)["why"]
        assert "field rain is DOUBLE, which 'rain' is not" in state(gateway)["sample"][0]


def test_a_misspelt_type_is_told_before_what_the_operator_allows(tmp_path: Path) -> None:
    opener = Opener(types(), tmp_path, ("loopback",), tmp_path)
    with pytest.raises(
        AddressError, match=r"no type of streams 'tpc': did you mean 'tcp'\? there are .*replay"
    ):
        opener.made(Sensor("tpc://192.0.2.1:5001", {}, ()))
    with pytest.raises(AddressError, match=r"the operator allows no tcp://192\.0\.2\.1"):
        opener.made(Sensor("tcp://192.0.2.1:5001", {}, ()))


def test_lines_over_a_serial_line(peer: RootPeer, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    device = os.ttyname(theirs)
    with one_source(
        peer, tmp_path, [f"serial:{device}?baud=115200&format=csv", f"serial:{device}?baud=fast"]
    ) as (gateway, _):
        wait_for(lambda: state(gateway, 1)["state"] == "refused")
        assert "the operator allows no files in /dev/pts" in state(gateway)["why"]
    with opened(peer, tmp_path, sources=[device]) as gateway:
        [query] = gateway.queries.all()
        gateway.sources.start()
        wait_for(lambda: state(gateway)["state"] == "open")
        os.write(ours, b"0.5,harbour,2002-11-06T12:00:00Z\r\n1.5,hi")
        assert come(gateway, query, 1)[0][:3] == (1, 0.5, "harbour")
        os.write(ours, b"ll,\r\n")
        assert come(gateway, query, 2)[1][:3] == (1, 1.5, "hill")
        wait_for(
            lambda: (
                "baud=fast: write a number from 50 to 4000000, as in baud=9600" in state(gateway, 1)["why"]
            )
        )
        # Pulled out.
        os.close(ours)
        wait_for(lambda: state(gateway)["state"] == "away")
    os.close(theirs)


def test_a_source_goes_on_where_its_tuple_changes_but_not_its_address(peer: RootPeer, tmp_path: Path) -> None:
    server = LineServer()
    create = "CREATE SENSORS weather (id INT, feed STREAM (rain DOUBLE), place TEXT, other TEXT)"
    with opened(peer, tmp_path) as gateway:
        gateway.queries.ask(create, "ada")
        gateway.queries.ask(f"INSERT INTO weather VALUES (1, '{server.address}', 'hill', NULL)", "ada")
        query = gateway.queries.ask("SELECT place, rain FROM weather", "ada")
        assert isinstance(query, UserQuery)
        gateway.sources.start()
        server.send({"rain": 1})
        come(gateway, query, 1)
        for number in range(2, 6):
            # It has been taken in part: what comes next is the rest of the line.
            server.send(b'{"rain": ')
            gateway.queries.ask(f"UPDATE weather SET place = 'place {number}' WHERE id = 1", "ada")
            gateway.sources.look()
            server.send(b"%d}\n" % number)
            come(gateway, query, number)
        assert [row[1] for row in rows(gateway, query)] == [1, 2, 3, 4, 5]
        assert rows(gateway, query)[0][0] == "hill"

        def is_followed() -> bool:
            server.send({"rain": 6})
            return rows(gateway, query)[-1] == ("place 5", 6)

        wait_for(is_followed)
        assert server.calls == 1
        # Rows have other columns from then on.
        gateway.queries.ask("ALTER SENSORS weather DROP other", "ada")
        wait_for(lambda: server.calls == 2 and server.listeners == 1)
        server.send({"rain": 7})
        wait_for(lambda: rows(gateway, query)[-1] == ("place 5", 7))
    server.close()


def test_files_elsewhere_are_refused(peer: RootPeer, tmp_path: Path) -> None:
    with one_source(peer, tmp_path, "file:../state.sqlite") as (gateway, _):
        wait_for(lambda: state(gateway)["state"] == "refused")
        assert "the operator allows no files in" in state(gateway)["why"]


def test_a_web_page_is_asked_again_and_again(peer: RootPeer, tmp_path: Path) -> None:
    seen: list[tuple[str, str | None]] = []
    now: dict[str, Any] = {"rain": 0.25, "at": {"place": "hill"}}

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tag = str(now["rain"])
            seen.append((self.path, self.headers.get("If-None-Match")))
            self.send_response(304 if self.headers.get("If-None-Match") == tag else 200)
            self.send_header("ETag", tag)
            self.end_headers()
            if self.headers.get("If-None-Match") != tag:
                self.wfile.write(json.dumps([now, now]).encode())

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with one_source(peer, tmp_path, f"http://127.0.0.1:{server.server_port}/now?every=50ms&station=5") as (
        gateway,
        query,
    ):
        assert [row[:3] for row in come(gateway, query, 2)] == [(1, 0.25, "hill")] * 2
        wait_for(lambda: seen[-1] == ("/now?station=5", "0.25"))
        now["rain"] = 3
        assert [row[1] for row in come(gateway, query, 4)] == [0.25, 0.25, 3.0, 3.0]
    server.shutdown()


def test_a_replay_plays_a_file_and_ends_its_query(peer: RootPeer, tmp_path: Path) -> None:
    folder = tmp_path / "streams"
    folder.mkdir()
    times = [f"2002-11-06 12:00:0{i}" for i in range(5)]
    pa.parquet.write_table(pa.table({"rain": [0.5, 1, 2, None, 4], "moment": times}), folder / "past.parquet")
    create = "CREATE SENSORS weather (id INT, feed STREAM (rain DOUBLE, moment TIMESTAMP TIME))"
    with one_source(peer, tmp_path, "replay:past.parquet?speed=20", create) as (gateway, query):
        wait_for(lambda: query.finished)
        found = rows(gateway, query)
        assert [row[:2] for row in found] == [(1, 0.5), (1, 1.0), (1, 2.0), (1, None), (1, 4.0)]
        assert [f"{row[2]:%Y-%m-%d %H:%M:%S}" for row in found] == times
        assert state(gateway)["state"] in ("ended", "")


def test_a_replay_of_csv_at_once(peer: RootPeer, tmp_path: Path) -> None:
    folder = tmp_path / "streams"
    folder.mkdir()
    lines = "".join(f"{i / 2},2002-11-06T00:00:00Z,{i}\n" for i in range(5000))
    (folder / "past.csv").write_text(f"rain,moment,note\n{lines}")
    create = "CREATE SENSORS weather (id INT, feed STREAM (rain DOUBLE, note INT, moment TIMESTAMP TIME))"
    with one_source(peer, tmp_path, "replay:past.csv?speed=max", create) as (gateway, query):
        wait_for(lambda: query.finished)
        assert [row[1:3] for row in rows(gateway, query)] == [(i / 2, i) for i in range(5000)]
