"""A source that sends as much as it can: memory stays bounded, and others have their turn."""

from __future__ import annotations

import threading
from pathlib import Path

from gateway.tests.opened import opened
from gateway.tests.process import wait_for
from gateway.tests.sources.line_server import LineServer
from gateway.tests.sources.one_source import SHORT, come, state
from skerry.service.queries import UserQuery
from skerry.sources.reading import DECODED_ROWS, WAITING_ROWS


def test_a_source_that_never_stops_starves_no_other(tmp_path: Path) -> None:
    busy, quiet, sent, enough = LineServer(), LineServer(), [0], threading.Event()

    def send() -> None:
        while not enough.is_set():
            busy.send(b'{"rain": 1}\n' * 5000)
            sent[0] += 5000

    with opened([], tmp_path) as gateway:
        gateway.queries.ask(SHORT, "ada")
        for number, server in enumerate((busy, quiet), 1):
            gateway.queries.ask(f"INSERT INTO weather VALUES ({number}, '{server.address}')", "ada")
        gateway.queries.ask("SELECT rain FROM weather WHERE id = 1 AND rain > 1", "ada")
        query = gateway.queries.ask("SELECT rain FROM weather WHERE id = 2", "ada")
        assert isinstance(query, UserQuery)
        gateway.sources.start()
        wait_for(lambda: (busy.listeners, quiet.listeners) == (1, 1))
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        wait_for(lambda: state(gateway)["rows"] > WAITING_ROWS)
        most = 0
        for number in range(3):
            quiet.send({"rain": number})
            assert come(gateway, query, number + 1)[-1] == (number,)
            most = max(most, state(gateway)["waiting"])
        enough.set()
        sender.join()
        # All of it comes, though the gateway was behind: the source had to wait.
        wait_for(lambda: (state(gateway)["rows"], state(gateway)["waiting"]) == (sent[0], 0))
        assert most <= WAITING_ROWS + DECODED_ROWS
    for server in (busy, quiet):
        server.close()
