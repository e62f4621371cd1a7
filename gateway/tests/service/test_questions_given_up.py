"""Questions of the past whose readers go before they are answered, or that may not take so much, over HTTP and by the command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from gateway.tests.opened import opened
from gateway.tests.pasts import endless_past
from gateway.tests.peer import RootPeer
from gateway.tests.process import COMMAND, wait_for
from skerry.api.access import Access
from skerry.api.app import create_app
from skerry.api.feeds import SSE
from skerry.api.server import Server
from skerry.service.gateway import Gateway
from skerry.storage.history.engine.engine import PastEngine
from skerry.storage.history.engine.messages import Limits

LONG = "SELECT COUNT(*), SUM(temp) FROM sensors HISTORY 3650 day ONLY"


@dataclass
class Served:
    gateway: Gateway
    url: str

    @property
    def answering(self) -> int:
        return self.gateway.history.engine.answering

    def ask(self, sql: str = LONG) -> str:
        asked = httpx.post(f"{self.url}/queries", json={"sql": sql, "user": "ada"})
        return str(asked.json()["id"])

    def rows(self, query: str) -> Any:
        return httpx.stream("GET", f"{self.url}/queries/{query}/rows", headers={"Accept": SSE}, timeout=600)


@pytest.fixture
def served(peer: RootPeer, tmp_path: Path) -> Iterator[Served]:
    """A gateway over a past that is too long to be read, and its API."""
    endless_past(tmp_path)
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with opened(peer, tmp_path) as gateway:
        app = create_app(gateway.queries, gateway.delivery, gateway.site, Access())
        server = Server(uvicorn.Config(app, log_config=None))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Served(gateway, url)
        finally:
            server.should_exit = True
            thread.join(30)


def test_who_hangs_up_or_stops_the_query_ends_its_question(served: Served) -> None:
    query = served.ask()
    with served.rows(query) as feed:
        lines = feed.iter_lines()
        assert next(lines) == ": rows behind -1 follow"
        wait_for(lambda: served.answering == 1)
    wait_for(lambda: served.answering == 0)
    with served.rows(query) as feed:
        lines = feed.iter_lines()
        next(lines)
        wait_for(lambda: served.answering == 1)
        httpx.delete(f"{served.url}/queries/{query}", headers={"X-User": "ada"})
        assert [line for line in lines if line] == ["event: end", "data: stopped"]
    assert served.answering == 0


def test_others_are_read_for_however_many_wait_for_the_past(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All who have rows to come are behind.
    monkeypatch.setattr("skerry.service.reader.NEAR_ROWS", -(2**60))
    with ExitStack() as stack:
        long = served.ask()
        feeds = [stack.enter_context(served.rows(long)) for _ in range((os.cpu_count() or 1) + 8)]
        # Who lets go of its lines hangs up.
        waiting = [feed.iter_lines() for feed in feeds]
        assert {next(lines) for lines in waiting} == {": rows behind -1 follow"}
        wait_for(lambda: served.answering > 0)
        query = served.ask("SELECT nodeid FROM sensors SAMPLE PERIOD 1 s")
        lines = stack.enter_context(served.rows(query)).iter_lines()
        next(lines)
        httpx.delete(f"{served.url}/queries/{query}", headers={"X-User": "ada"})
        assert [line for line in lines if line] == ["event: end", "data: stopped"]
        assert served.answering > 0
    wait_for(lambda: served.answering == 0)


def test_so_does_ctrl_c(served: Served) -> None:
    command = subprocess.Popen([COMMAND, "query", LONG, "--url", served.url], stdout=subprocess.PIPE)
    wait_for(lambda: served.answering == 1)
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=600)
    wait_for(lambda: served.answering == 0)
    wait_for(lambda: not served.gateway.queries.all())


def test_a_limit_that_is_reached_is_told_with_what_is_right(served: Served, tmp_path: Path) -> None:
    hasty = PastEngine(tmp_path / "hasty", Limits(threads=1, memory=2**30, disk=0, seconds=0.25))
    served.gateway.history.engine = hasty
    limit = "its answer takes longer than 0.25 s, the most that one about the past may take"
    right = "ask for a shorter HISTORY, for fewer rows with WHERE, or for fewer groups"
    with served.rows(served.ask()) as feed:
        told = [line for line in feed.iter_lines() if line][1:]
    assert told == ["event: refused", f"data: {limit}: {right}"]
    command = subprocess.run(
        [COMMAND, "query", LONG, "--url", served.url], capture_output=True, text=True, check=False
    )
    assert command.returncode == 1
    assert f"{limit}: {right}" in " ".join(command.stderr.split())
    hasty.stop()
