"""When a silent reader is read for: thousands of them are looked after together, and only those who are due cost more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import numpy as np
import pytest

from gateway.tests.logs import STREAMS, plan_of
from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from skerry.api.access import Access
from skerry.api.app import create_app
from skerry.delivery.engine import Engine
from skerry.planner.model.plans import Feed
from skerry.service.queries import UserQuery
from skerry.service.reader import PORTION_ROWS, Reader
from skerry.storage.log.record import RECORD, Block
from skerry.storage.log.stream_log import StreamLog

SQL = "SELECT nodeid FROM sensors WHERE temp > 100 SAMPLE PERIOD 5 s"


class Silent:
    """A reader of whose query no row of the log ever is."""

    def __init__(self, directory: Path, backlog: int) -> None:
        self.engine = Engine(STREAMS.get)
        self.query = UserQuery("u", "ada", SQL, plan_of(SQL), 0.0, 0)
        self.engine.subscribe("u", self.query.plan)
        self.engine.set_feeds("u", {1: Feed("u", 1, 5000, 5000, 0)})
        self.log = StreamLog(directory)
        self.reader = Reader(self.query, -1, self.engine, self.log.path, lambda: self.engine.done, backlog)

    def others(self, count: int) -> None:
        """So many rows go by."""
        rows = np.zeros(count, RECORD)
        rows["stream"] = 1
        first = self.log.rows
        self.log.append(rows)
        self.engine.process(Block(first, rows))


def test_he_is_read_for_when_many_rows_of_others_have_gone_by(tmp_path: Path) -> None:
    silent = Silent(tmp_path, backlog=1000)
    silent.others(200)
    assert not silent.reader.due
    silent.others(100)
    assert silent.reader.due
    portion = silent.reader.read()
    assert (portion.deliveries, portion.dropped, portion.position) == ([], None, 299)
    assert not silent.reader.due


def test_a_long_backlog_does_not_let_him_fall_behind_memory(tmp_path: Path) -> None:
    silent = Silent(tmp_path, backlog=100 * PORTION_ROWS)
    silent.others(PORTION_ROWS - 1)
    assert not silent.reader.due
    silent.others(2)
    assert silent.reader.due


def test_he_is_read_for_when_his_query_is_over(tmp_path: Path) -> None:
    silent = Silent(tmp_path, backlog=1000)
    assert not silent.reader.due
    silent.query.finished = True
    assert silent.reader.due
    silent.query.finished = False
    silent.engine.unsubscribe("u")
    assert silent.reader.due


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT COUNT(*), MAX(temp) FROM sensors HISTORY 1 day ONLY", [{"COUNT(*)": 0, "MAX(temp)": None}]),
        ("SELECT nodeid, temp FROM sensors HISTORY 1 day ONLY", []),
        ("SELECT nodeid, temp FROM sensors ORDER BY temp HISTORY 1 day ONLY", []),
        ("SELECT nodeid, COUNT(*) FROM sensors GROUP BY nodeid HISTORY 1 day ONLY", []),
    ],
)
def test_a_past_in_which_nobody_has_asked_is_a_past_without_rows(
    peer: RootPeer, tmp_path: Path, sql: str, rows: list[dict[str, object]]
) -> None:
    with opened(peer, tmp_path) as gateway:
        query = gateway.queries.ask(sql, "ada")
        assert isinstance(query, UserQuery)
        reader = gateway.delivery.reader(query, None)
        portion = reader.read()
        assert not portion.more
        assert [row for part in portion.deliveries for _, row in part.values()] == rows
        assert reader.read().deliveries == [], "once"


def test_a_row_that_is_still_to_come_is_no_position(peer: RootPeer, tmp_path: Path) -> None:
    """Who asks for what is behind it would miss that row."""
    with opened(peer, tmp_path) as gateway:

        async def said(query: UserQuery, after: int) -> tuple[int, str]:
            transport = httpx.ASGITransport(
                create_app(gateway.queries, gateway.delivery, gateway.site, Access())
            )
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
                answer = await http.get(f"/queries/{query.id}/rows?after={after}")
                return answer.status_code, answer.text

        query = gateway.queries.ask("SELECT COUNT(*) FROM sensors HISTORY 1 day ONLY", "ada")
        assert isinstance(query, UserQuery)
        assert asyncio.run(said(query, 0))[0] == 200
        gateway.log.append(np.zeros(5, RECORD))
        query = gateway.queries.ask("SELECT COUNT(*) FROM sensors HISTORY 1 day ONLY", "ada")
        assert isinstance(query, UserQuery)
        assert asyncio.run(said(query, 4))[0] == 200
        status, text = asyncio.run(said(query, 5))
        assert status == 400
        assert "position '5': expected the id of an event" in text
        assert "the log ends before row 5" in text
