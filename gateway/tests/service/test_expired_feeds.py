"""Feeds on streams whose rows have left the log: forgotten, and by whom."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery
from skerry.storage.log.record import RECORD

HOUR_US = 3_600_000_000


def ask(gateway: Gateway, sql: str) -> UserQuery:
    """A query that has begun: what motes ran before it is over."""
    query = gateway.queries.ask(sql, "ada")
    assert isinstance(query, UserQuery)
    clock = gateway.roots[0].network.clock
    clock.restart(round(clock.now()) + 60, 0, time.time())
    return query


def append(gateway: Gateway, stream: int, hours_ago: float) -> None:
    """Rows of a stream that came so long ago."""
    records = np.zeros(4, RECORD)
    records["stream"], records["node"] = stream, 1
    records["sample"] = records["arrival"] = time.time_ns() // 1000 - round(hours_ago * HOUR_US)
    gateway.log.append(records)


def streams(query: UserQuery) -> list[int]:
    return sorted(query.feeds)


def test_feeds_go_with_the_rows_that_they_are_for(peer: RootPeer, tmp_path: Path) -> None:
    """Of streams that have ended, where no window of a query still holds their rows."""
    with opened(peer, tmp_path) as gateway:
        gateway.log._segment_rows = 4
        plain = ask(gateway, "SELECT temp SAMPLE PERIOD 10 s")
        short = ask(gateway, "SELECT AVG(temp, 5 min) SAMPLE PERIOD 10 s")
        long = ask(gateway, "SELECT AVG(temp, 3 day) SAMPLE PERIOD 10 s")
        whole = ask(gateway, "SELECT AVG(temp, start, 1 hour) SAMPLE PERIOD 10 s")
        queries = [plain, short, long, whole]
        for period, hours_ago in ((5, 48), (2, 40), (1, 2)):
            append(gateway, max(plain.feeds), hours_ago)
            ask(gateway, f"SELECT light SAMPLE PERIOD {period} s")
        now = max(plain.feeds)
        append(gateway, now, 0)
        assert [streams(query) for query in queries] == [[1, 2, 3, 4]] * 4
        gateway.log.drop_before(4)
        wait_for(lambda: streams(plain) == [2, 3, 4])
        assert [streams(query) for query in queries[1:]] == [[1, 2, 3, 4]] * 3
        gateway.log.drop_before(12)
        wait_for(lambda: streams(plain) == [4])
        assert streams(short) == [3, 4]
        assert [streams(query) for query in (long, whole)] == [[1, 2, 3, 4]] * 2
        with gateway._lock:
            subscriber = gateway.delivery.engine.subscriber(plain.id)
            assert subscriber is not None
            assert sorted(subscriber.feeds) == [4]
            assert not gateway.persistence.unsaved
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as state:
        found = state.execute("SELECT query, stream FROM query_feeds ORDER BY stream").fetchall()
    feeds = [[stream for name, stream in found if name == query.id] for query in queries]
    assert feeds == [[4], [3, 4], [1, 2, 3, 4], [1, 2, 3, 4]]


def test_who_may_still_have_rows_of_a_stream_keeps_his_feed(peer: RootPeer, tmp_path: Path) -> None:
    """A gateway that starts does not know which row of a stream was the last."""
    with opened(peer, tmp_path) as gateway:
        gateway.log._segment_rows = 4
        plain = ask(gateway, "SELECT temp SAMPLE PERIOD 10 s")
        append(gateway, 1, 48)
        ask(gateway, "SELECT light SAMPLE PERIOD 5 s")
        append(gateway, 1, 48)
    with opened(peer, tmp_path) as gateway:
        gateway.log._segment_rows = 4
        (plain,) = [query for query in gateway.queries.all() if query.id == plain.id]
        append(gateway, 2, 0)
        gateway.log.drop_before(4)
        wait_for(lambda: gateway.delivery._begun == 4)
        assert {1, 2} <= plain.feeds.keys()
