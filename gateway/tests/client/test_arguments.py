"""What the client refuses by itself, before anything is sent: no gateway runs here."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable

import httpx
import pytest

import skerry
from gateway.tests.ports import free_port
from gateway.tests.process import COMMAND
from skerry.client import client
from skerry.client.client import stops
from skerry.client.rows import Rows, _Events


@pytest.mark.parametrize(
    "sql",
    ["DROP ALL", " drop all;", "-- all of them\nDROP ALL", "STOP QUERY 3", "DROP STORAGE POINT recent", "drop srt rooms"],
)  # fmt: skip
def test_what_stops_queries_is_not_asked_as_one(sql: str) -> None:
    with pytest.raises(skerry.GatewayError, match="nothing was done; use stop_by"):
        skerry.connect("http://127.0.0.1:1").query(sql)
    assert stops(sql)


@pytest.mark.parametrize(
    "sql", ["SELECT temp ONCE", "CREATE SRT stop ON sensors (room)", "-- DROP ALL\nSELECT temp ONCE", "", "DROPPED"]
)  # fmt: skip
def test_what_runs_is_not_asked_to_stop(sql: str) -> None:
    with pytest.raises(skerry.GatewayError, match="expected STOP QUERY n, DROP ALL"):
        skerry.connect("http://127.0.0.1:1").stop_by(sql)


def test_rows_behind_those_that_were_dropped_are_not_skipped() -> None:
    """The connection broke among rows of number 5; when it is back, 5 to 9 are gone."""
    description = {"id": "1", "columns": [], "into": None, "srt": None}
    rows = Rows(skerry.connect("http://127.0.0.1:1"), description)
    before = _Events(rows)
    for line in [*event("4", "row", "4"), *event("", "row", "5a"), *event("", "row", "5b")]:
        before.line(line)
    after = _Events(rows)
    dropped = {"first": 5, "last": 9, "since": None, "until": None, "reason": "slow"}
    lines = [*event("9", "dropped", dropped), *event("", "row", "10a"), *event("10", "row", "10b")]
    with pytest.warns(skerry.RowsDroppedWarning):
        found = [row for line in lines if (row := after.line(line)) is not None]
    assert found == ["10a", "10b"]
    assert rows.position == 10


@pytest.mark.parametrize("read", [Rows.to_arrow, Rows.to_pandas])
def test_fewer_rows_than_none_are_refused(read: Callable[..., object]) -> None:
    description = {"id": "1", "columns": [], "into": None, "srt": None}
    rows = Rows(skerry.connect("http://127.0.0.1:1"), description)
    with pytest.raises(ValueError, match=r"^rows=-1: expected how many rows to read, 0 or more"):
        read(rows, rows=-1)


def answering(answer: Callable[[httpx.Request], httpx.Response]) -> skerry.Client:
    """A client whose requests are answered so."""
    client = skerry.connect("http://127.0.0.1:1")
    client.http = httpx.Client(base_url=client.url, transport=httpx.MockTransport(answer))
    return client


@pytest.mark.parametrize("key", ["room", "mote", "self"])
def test_a_tag_may_have_any_name(key: str) -> None:
    client = answering(lambda request: httpx.Response(200, content=request.read()))
    assert client.tag(3, **{key: "iris"}) == {key: "iris"}


def test_columns_of_one_name_keep_their_values() -> None:
    """As of ``SELECT a.nodeid, b.nodeid FROM motes a JOIN motes b …``."""
    found = {"columns": ["nodeid", "nodeid", "nodeid:1", "nodeid"], "rows": [[1, 2, 3, 4]]}
    columns, rows = answering(lambda _: httpx.Response(200, json=found)).selected("SELECT …")
    assert columns == ["nodeid", "nodeid:1", "nodeid:1:1", "nodeid:2"]
    assert rows == [{"nodeid": 1, "nodeid:1": 2, "nodeid:1:1": 3, "nodeid:2": 4}]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            httpx.Response(200, text="<html>It works!</html>"),
            "no gateway: expected JSON, not '<html>It works!",
        ),
        (httpx.Response(308, headers={"Location": "https://b/status"}), "it has moved: ask https://b/status"),
        (httpx.Response(204), "no gateway: expected JSON, not ''"),
    ],
)
def test_what_is_no_gateway_is_named(answer: httpx.Response, message: str) -> None:
    with pytest.raises(skerry.GatewayError, match=f"^http://127.0.0.1:1: .*{message}"):
        answering(lambda _: answer).status()


def test_who_listens_and_shakes_no_hands_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_S", 0.1)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(
            skerry.GatewayError, match=r"^https://127\.0\.0\.1:\d+: no TLS handshake within 0\.1 s$"
        ),
    ):
        skerry.connect(f"https://127.0.0.1:{silent.getsockname()[1]}").status()


@pytest.mark.parametrize("name", ["1?x", "1#x", "../status", "a/b"])
def test_a_name_is_asked_for_as_it_is(name: str) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200, json={"queries": []})

    client = answering(answer)
    client.stop(name)
    client.signal(name)
    client.run(name)
    assert asked == [f"/queries/{name}", f"/events/{name}", f"/commands/{name}"]


def test_no_name_at_all_is_one_line() -> None:
    done = run("stop", "", "--url", f"http://127.0.0.1:{free_port()}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("skerry: '' is no name: expected the id of a query")


def event(number: str, kind: str, data: object) -> list[str]:
    """A server-sent event's lines, the empty one included."""
    return [*([f"id: {number}"] if number else []), f"event: {kind}", f"data: {json.dumps(data)}", ""]


def run(*arguments: str | bytes, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize(
    "url", ["http://[::1", "localhost:8642", "http://", "http://127.0.0.1:99999", "ftp://127.0.0.1:8642"]
)
def test_a_url_that_is_none_is_one_line(url: str) -> None:
    done = run("list", "--url", url)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"skerry: gateway '{url}': expected http://HOST:PORT or https://…, as in http://127.0.0.1:8642\n"
    )


@pytest.mark.parametrize("token", ["ü", "two words", "one\ntwo"])
def test_a_token_that_is_none_is_one_line_without_it(token: str) -> None:
    done = run("list", "--url", f"http://127.0.0.1:{free_port()}", SKERRY_TOKEN=token)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "skerry: the token has characters that no token has: expected printable ASCII"
    )
    assert done.stderr.count("\n") == 1
    assert token not in done.stderr


def test_text_that_is_none_is_one_line() -> None:
    done = run("query", b"SELECT temp -- \xff", "--url", f"http://127.0.0.1:{free_port()}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "skerry: '\\udcff' is half a character, or none: leave it out\n"


@pytest.mark.parametrize("duration", ["soon", "0s", "-5s", "9999999999999 day"])
def test_a_duration_that_no_query_runs_for_is_refused_before_it_is_asked(duration: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = run("query", "SELECT temp ONCE", "--for", duration, "--url", url, COLUMNS="200")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--for: '{duration}': expected a duration as in 60s or 10min" in done.stderr


def test_spaces_around_a_token_are_none_of_it() -> None:
    client = skerry.connect("http://127.0.0.1:1", token=" abc\n")
    assert client.http.headers["Authorization"] == "Bearer abc"
