"""Somebody sets the clock of the gateway's machine while it runs: the motes' time goes on as it did."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import SQL, queue_rows, wait_for
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery
from skerry.storage.log import stream_log
from skerry_protocol import codec


def ask(gateway: Gateway, sql: str) -> UserQuery:
    query = gateway.queries.ask(sql, "ada")
    assert isinstance(query, UserQuery)
    return query


@pytest.mark.parametrize("step", [3600, -3600])
def test_queries_go_on_and_rows_have_the_time_that_it_is(
    peer: RootPeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    peer.began -= 100
    real = time.time
    with opened(peer, tmp_path) as gateway:
        first = ask(gateway, f"{SQL} FOR 60 s")
        wait_for(peer.programs)
        monkeypatch.setattr("time.time", lambda: real() + step)
        on_the_network = time.monotonic() - peer.began
        assert gateway.site.status()["network_time_s"] == pytest.approx(on_the_network, abs=2)
        later = ask(gateway, f"{SQL} FOR 20 s")
        time.sleep(1.5)
        assert not first.finished
        [feed] = later.feeds.values()
        assert feed.since_ms / 1000 == pytest.approx(on_the_network, abs=12), "it begins soon"
        [(query, program)] = peer.programs().items()
        epoch = codec.decode_program(program).start
        queue_rows(peer, query, range(epoch, epoch + 1), program)
        wait_for(lambda: gateway.delivery.rows == 3)
        rows = stream_log.read(tmp_path / "log", 0, 3)
        sampled = time.time() - (time.monotonic() - peer.began) + epoch
        expected = min(sampled, rows["arrival"][0] / 1e6)
        assert rows["sample"][0] / 1e6 == pytest.approx(expected, abs=2)
