"""MQTT and server-sent events against a real broker and a real server, over broken connections and restarts; secrets in addresses."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from gateway.tests.sources.broker import PASSWORD, USER, Broker
from gateway.tests.sources.one_source import SHORT, again, come, one_source, rows, state

CREATE = "CREATE SENSORS weather (id INT, feed STREAM (rain DOUBLE, topic TEXT, value DOUBLE))"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path / "broker")
    yield made
    made.stop()


def keep_secret(data: Path, host: str, name: str, text: str) -> Path:
    """As the operator does it."""
    folder = data / "secrets" / host
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o600)
    return folder / name


def test_mqtt_messages_come_over_restarts_of_both_and_the_password_is_nowhere(
    peer: RootPeer, tmp_path: Path, broker: Broker
) -> None:
    data = tmp_path / "data"
    secret = keep_secret(data, f"127.0.0.1:{broker.port}", "plant", f"{PASSWORD}\n")
    address = f"mqtt://{USER}:{{secret:plant}}@127.0.0.1:{broker.port}/plant/+/rain"
    seen = ""
    with one_source(peer, data, address, CREATE) as (gateway, query):
        wait_for(lambda: state(gateway)["state"] == "open")
        broker.publish("plant/a/rain", '{"rain": 1.5}', "2", "no json")
        broker.publish("plant/a/other", '{"rain": 9}')
        assert come(gateway, query, 2) == [(1, 1.5, "plant/a/rain", None), (1, None, "plant/a/rain", 2)]
        wait_for(lambda: state(gateway)["misfits"] == 1)
        seen += json.dumps(gateway.site.status(), default=str)
    # While the gateway is away the broker keeps them, also over its own restart.
    broker.publish("plant/b/rain", *(json.dumps({"rain": i}) for i in range(3, 103)))
    broker.stop()
    broker.start()
    with again(peer, data) as (gateway, query):
        found = come(gateway, query, 102)
        assert sorted({row[1] for row in found[2:]}) == list(range(3, 103))
        # Rows are taken once those before are acknowledged.
        broker.publish("plant/a/rain", "200")
        assert come(gateway, query, 103)[-1] == (1, None, "plant/a/rain", 200)
        broker.stop()
        wait_for(lambda: state(gateway)["state"] == "away")
        secret.chmod(0o640)
        wait_for(lambda: state(gateway)["state"] == "refused")
        assert f"others may reach {secret}: chmod go= {secret}" in state(gateway)["why"]
        seen += json.dumps(gateway.site.status(), default=str)
    secret.chmod(0o600)
    broker.start()
    with again(peer, data) as (gateway, query):
        broker.publish("plant/a/rain", "300")
        wait_for(lambda: rows(gateway, query)[-1][3] == 300)
        once = [row for row in rows(gateway, query) if row[3] != 200]
        assert len(once) == 103, "what was acknowledged does not come again"
    for file in (path for path in data.rglob("*") if path.is_file() and path != secret):
        assert PASSWORD.encode() not in file.read_bytes(), file
    assert PASSWORD not in seen
    assert "{secret:plant}" in seen


class Events:
    """A server that numbers its events, keeps them, and hangs up when it is told to."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str | None, str | None]] = []
        self._more, self._calls = threading.Condition(), 0
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner._serve(self)

            def log_message(self, *_: object) -> None: ...

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def send(self, *events: dict[str, Any]) -> None:
        with self._more:
            self.events += events
            self._more.notify_all()

    def hang_up(self) -> None:
        with self._more:
            self._calls += 1
            self._more.notify_all()

    def _serve(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        last = handler.headers.get("Last-Event-ID")
        self.asked.append((handler.path, last, handler.headers.get("Authorization")))
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        at, call = int(last) + 1 if last else 0, self._calls
        while self._calls == call:
            with self._more:
                events, first = self.events[at:], at
                at = len(self.events)
                if not events:
                    self._more.wait(0.2)
            for number, event in enumerate(events, first):
                handler.wfile.write(
                    f": a word\nid: {number}\ndata: {json.dumps(event)}\n\nevent: ping\ndata: {{}}\n\n".encode()
                )
            handler.wfile.flush()

    def close(self) -> None:
        self.hang_up()
        self._server.shutdown()
        self._server.server_close()


def test_events_come_once_each_over_broken_connections_and_restarts(peer: RootPeer, tmp_path: Path) -> None:
    server = Events()
    keep_secret(tmp_path, "127.0.0.1", "token", "abc+/=")
    address = f"sse+http://127.0.0.1:{server.port}/feed?event=message&station=5&header.Authorization=Bearer {{secret:token}}"
    with one_source(peer, tmp_path, address, SHORT) as (gateway, query):
        server.send(*({"rain": i, "place": "hill"} for i in range(3)))
        assert [row[1] for row in come(gateway, query, 3)] == [0, 1, 2]
        server.hang_up()
        server.send({"rain": 3})
        assert [row[1] for row in come(gateway, query, 4)] == [0, 1, 2, 3]
    server.send(*({"rain": i} for i in range(4, 10)))
    with again(peer, tmp_path) as (gateway, query):
        assert [row[1] for row in come(gateway, query, 10)] == list(range(10))
    assert [last for _, last, _ in server.asked] == [None, "2", "3"]
    assert {path for path, _, _ in server.asked} == {"/feed?station=5"}
    assert {token for _, _, token in server.asked} == {"Bearer abc+/="}
    server.close()
