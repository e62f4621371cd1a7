"""A worker and its gateway without Spark and HTTP: whatever comes late or is lost, each reader gets what DuckDB answers him alone."""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.tests.executors import Executors
from gateway.tests.logs import STREAMS, Log, happenings, logs
from gateway.tests.users import User, users
from skerry.api.access import Access
from skerry.delivery import buffers
from skerry.service.api_workers import ApiWorkers
from skerry.service.delivery_service import DeliveryService
from skerry.service.queries import Queries, UserQuery
from skerry.service.reader import Reader
from skerry.serving import worker as worker_module
from skerry.serving.worker import Worker
from skerry.storage.log import stream_log
from skerry.storage.log.record import Block
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.state.published_users import PublishedUsers
from skerry.streams.stream import Stream


class Delivery:
    """Of :class:`DeliveryService` what workers are told of."""

    state = DeliveryService.state
    count = DeliveryService.count
    backlog = 10_000_000

    def __init__(self, executors: Executors, log: StreamLog, opened: int) -> None:
        self._log, self._opened = log, opened
        self._counting = ExitStack()
        self.engine = executors.engine(self._there)

    def _there(self, start: int, end: int) -> Block:
        return Block(*stream_log.read_there(self._log.path, start, end))

    def stream(self, number: int) -> Stream | None:
        return STREAMS.get(number)

    def through(self) -> int:
        return max(self.engine.done, self._opened)


class Site:
    """A gateway that may start anew, and one worker, whose news may come late or be lost."""

    def __init__(self, directory: Path) -> None:
        self.executors = Executors(directory)
        self.executors.publishing = True
        self.log = StreamLog(directory)
        self.queries = Queries()
        self.worker = Worker(
            directory, Access(PublishedUsers(directory), open=True), guarded=False, closed=lambda _: None
        )
        self.news: deque[dict[str, Any]] = deque()
        self.readers: dict[str, Reader] = {}
        self.start()

    def start(self) -> None:
        """The gateway begins, or begins anew."""
        for query in self.queries.all():
            query.readers = 0
        self.delivery = Delivery(self.executors, self.log, self.log.rows)
        self.workers = ApiWorkers(self.queries, cast(DeliveryService, self.delivery))
        for query in self.queries.all():
            self.subscribe(query)
        self.connect()

    def subscribe(self, query: UserQuery) -> None:
        self.delivery.engine.subscribe(query.id, query.plan, query.position)
        self.delivery.engine.set_feeds(query.id, dict(query.feeds))

    def connect(self) -> None:
        """News that have not come yet are lost."""
        self.news.clear()
        self.worker.lost()
        self.connected = self.workers.open("w", "here", 1, self.worker.readers(), self.news.append)

    def lose(self) -> None:
        self.workers.close(self.connected)
        self.connect()

    def deliver(self, count: int | None = None) -> None:
        while self.news and count != 0:
            self.worker.take(self.news.popleft())
            count = None if count is None else count - 1

    def come(self, user: User) -> None:
        sql = f"SELECT {user.columns} FROM sensors {f'WHERE {user.where}' if user.where else ''} SAMPLE PERIOD {user.period_ms} ms"
        query = UserQuery(user.name, "u", sql, user.plan, 0.0, user.began, feeds=user.feeds)
        self.queries.add(query)
        self.subscribe(query)

        async def count(number: int) -> bool:
            self.deliver()
            self.workers.read(number, query)
            self.deliver()
            return True

        self.deliver()
        found = asyncio.run(self.worker.open(user.name, count, 1.0))
        assert found is not None
        self.readers[user.name] = self.worker.reader(found, None)

    def go(self, user: User) -> None:
        self.queries.remove(user.name)
        self.delivery.engine.unsubscribe(user.name)
        self.deliver()
        self.worker.close(user.name)

    def rows(self, log: Log, end: int) -> None:
        """So many rows have come in all."""
        begin = self.log.rows
        records = log.records[begin:end].copy()
        if len(records):
            self.log.append(records)
            # A gateway that starts anew begins with what it had not been through.
            first = self.delivery.engine.done or begin
            self.executors.process(self.delivery.engine, Block(first, log.records[first:end]))
            self.workers.published(first, end)

    def read(self, user: User) -> None:
        reader = self.readers[user.name]
        while True:
            portion = reader.read()
            rows = [row for part in portion.deliveries for row in part.values()]
            user.got += [(number, *values.values()) for number, values in rows]
            if not portion.more:
                return

    def happen(self, kind: str, number: int, log: Log) -> None:
        match kind:
            case "rows":
                self.rows(log, min(self.log.rows + number, len(log.rows)))
            case "lag":
                self.executors.behind = number % 7
            case "deliver":
                self.deliver(number)
            case "lose":
                self.lose()
            case "start":
                self.start()
            case "delete" if files := self.executors.files.files():
                files[number % len(files)].path.unlink()

    def close(self) -> None:
        self.log.close()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    logs(),
    st.lists(users, min_size=1, max_size=6),
    happenings("come", "go", "read", "lag", "deliver", "lose", "start", "delete", most=25),
    st.sampled_from((1, 30, buffers.ROWS_MAXIMUM)),
)
def test_each_reader_gets_what_duckdb_answers_him_alone(
    log: Log, waiting: list[User], happening: list[tuple[str, int]], memory: int
) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        patch.object(buffers, "ROWS_MAXIMUM", memory),
        patch.object(worker_module, "VISIBLE_S", 0.0),
    ):
        site = Site(Path(directory))
        try:
            check(site, log, waiting, happening)
        except duckdb.Error:
            assume(False)
        finally:
            site.close()


def check(site: Site, log: Log, waiting: list[User], happening: list[tuple[str, int]]) -> None:
    present: list[User] = []
    for kind, number in [("come", 0), *happening, ("rows", len(log.rows)), ("lose", 0), ("deliver", 10_000)]:
        if kind in ("start", "lose", "rows") and number % 2:
            # Readers who are further behind have what comes from the log, whatever the worker knows.
            site.deliver()
            for user in present:
                site.read(user)
        match kind:
            case "come" if waiting:
                user = waiting.pop()
                user.name, user.began = str(len(waiting)), site.log.rows
                present.append(user)
                site.come(user)
            case "go" if present:
                site.go(present.pop(number % len(present)))
            case "read" if present:
                site.read(present[number % len(present)])
            case _:
                site.happen(kind, number, log)
    for user in present:
        site.read(user)
        assert user.got == user.duckdb_rows(log, len(log.rows))
        assert site.queries.get(user.name).readers == 1
