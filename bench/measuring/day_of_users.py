"""Users of a busy day: HTTP clients that ask, read, leave, come back with their position, and go, while the gateway comes and goes as it
will. What each was given is compared with what DuckDB answers of the rows that were sent."""

from __future__ import annotations

import asyncio
import json
import random
import time
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from bench.measuring.day_of_questions import ALL_ROWS, ALL_STATES, Question, Row, Span, drawn, mean
from bench.measuring.day_of_rows import DayOfRows
from skerry.storage.state import published

#: s until a query is stopped that nobody reads: of one whose answer a kill has cut off nobody knows.
LINGER_S = 300.0
#: s from a row's being sent until its reader must have it, of those in which the gateway is there.
STALLED_S = 1200.0
#: Rows of those that a user got which are told where they are wrong.
_TOLD = 3


@dataclass
class Feed:
    """A query's rows by server-sent events, over as many connections as it takes. ``rows``: (number of the log's row, values)."""

    port: int
    query: str
    #: Number of the last row of the log that the feed has told of.
    position: int = -1
    rows: list[tuple[int, Row]] = field(default_factory=list)
    #: What came that is no row: ``dropped``, ``refused``; and why the feed has ended.
    troubles: list[str] = field(default_factory=list)
    ended: str | None = None
    connections: int = 0

    async def read(self) -> None:
        """Over one connection, until that breaks off or the feed ends; cancelled, it is as if the reader had been killed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            last = f"Last-Event-ID: {self.position}\r\n" if self.position >= 0 else ""
            writer.write(
                f"GET /queries/{self.query}/rows HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n{last}\r\n".encode()
            )
            status = await reader.readline()
            if not status.startswith(b"HTTP/1.1 200"):
                if status.startswith(b"HTTP/1.1 4"):
                    self.troubles.append((status + await reader.read(2000)).decode())
                return
            self.connections += 1
            await self._events(reader)
        finally:
            writer.close()

    async def _events(self, reader: asyncio.StreamReader) -> None:
        event: dict[bytes, bytes] = {}
        # Rows of one number come together: who is cut off amid them is given all of them again.
        together: list[Row] = []
        while (line := await reader.readline()).endswith(b"\n"):
            name, colon, value = line.rstrip(b"\r\n").partition(b": ")
            if colon:
                event[name] = value
                continue
            if name or not event:
                continue  # the size of a chunk, or what stands before it
            told, event = event, {}
            kind, number = told.get(b"event"), told.get(b"id")
            if kind == b"row":
                together.append(tuple(json.loads(told[b"data"]).values()))
            elif kind is not None:
                if kind == b"end":
                    self.ended = told[b"data"].decode()
                    return
                self.troubles.append(f"{kind.decode()}: {told.get(b'data', b'').decode()}")
            if number is not None:
                self.rows += [(int(number), row) for row in together]
                together, self.position = [], int(number)


class Witness:
    """Reads all rows, or all states, from the first to the last, holds them against what was sent, and knows their numbers in the log."""

    def __init__(self, feed: Feed, day: DayOfRows, kind: str) -> None:
        self.feed, self._day, self._kind = feed, day, kind
        #: Numbers in the log, in the order in which the rows were sent.
        self.numbers = array("q")
        self.problems: list[str] = []
        #: When rows came last, in s of the monotonic clock.
        self.heard = time.monotonic()

    def look(self) -> None:
        """Take over what has come. In the event loop."""
        got, self.feed.rows = self.feed.rows, []
        if not got:
            return
        self.heard = time.monotonic()
        begin = len(self.numbers)
        self.numbers.extend(number for number, _ in got)
        sent = self._day.sent(self._kind, begin, begin + len(got))
        expected = [_as_told(self._kind, row) for row in sent]
        if [row for _, row in got] != expected and len(self.problems) < _TOLD:
            self.problems.append(
                f"{self._kind} from {begin}: {_first_difference(expected, [row for _, row in got])}"
            )

    def until(self, number: int) -> int:
        """How many were sent whose number in the log is below this one."""
        return int(np.searchsorted(np.frombuffer(self.numbers, np.int64), number))


def _as_told(kind: str, row: Row) -> Row:
    if kind == "sensors":
        _, node, sample, temp, light = row
        return node, sample // 10_000, temp / 100, light
    _, epoch, motes, total, most = row
    return epoch, motes, mean(Decimal(total) / 100, motes), most / 100, motes


class Crowd:
    """All users. ``up`` is set while the gateway is there."""

    def __init__(
        self, day: DayOfRows, port: int, data: Path, seed: int, stay_s: float, away_s: float
    ) -> None:
        self._day, self._port, self._data = day, port, data
        self._chance = random.Random(seed)
        self._stay_s, self._away_s = stay_s, away_s
        self.up = asyncio.Event()
        self.over = asyncio.Event()
        self._http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", timeout=60, limits=httpx.Limits(max_connections=20)
        )
        self.came = self.checked = self.rows = self.connections = self.unanswered = self._open = 0
        self.kinds: dict[str, int] = {}
        self.problems: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._reading: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """The two who read everything."""
        self.witnesses = [
            Witness(Feed(self._port, (await self._ask(question, None))), self._day, kind)
            for kind, question in (("sensors", ALL_ROWS), ("epochs", ALL_STATES))
        ]
        self._reading = [asyncio.create_task(self._keep(witness.feed)) for witness in self.witnesses]
        self._reading.append(asyncio.create_task(self._look()))

    def come(self, users: int, within_s: float) -> None:
        """So many are there from now on, coming within some time; for each that goes there comes another."""
        self._tasks = [asyncio.create_task(self._place(within_s)) for _ in range(users)]

    async def leave_users(self) -> None:
        """All users go."""
        self.over.set()
        await asyncio.gather(*self._tasks)

    async def leave(self) -> None:
        """The two go, when they have had everything."""
        await self._behind(self._day.rows, self._day.states)
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        for witness in self.witnesses:
            witness.look()
            self.problems += witness.problems + witness.feed.troubles
            await self._stop(witness.feed.query)
        await self._http.aclose()

    async def queries(self) -> int:
        """Queries that the gateway has."""
        return len((await self._http.get("/queries")).json())

    @property
    def reading(self) -> int:
        """Feeds that are open."""
        return self._open

    async def compact(self) -> None:
        """As somebody may who runs ``skerry compact`` now and then."""
        with suppress(httpx.TransportError):
            await self._http.post("/history", json={})

    # ---- one user ----

    async def _place(self, within_s: float) -> None:
        await self._wait(self._chance.uniform(0, within_s))
        while not self.over.is_set():
            question = drawn(self._chance, self._day.motes)
            self.came += 1
            self.kinds[question.kind] = self.kinds.get(question.kind, 0) + 1
            try:
                await self._user(question)
            except Exception as error:
                self.problems.append(f"{question.sql}: {type(error).__name__}: {error}")
                await self._wait(5)

    async def _user(self, question: Question) -> None:
        feed = Feed(self._port, await self._ask(question, LINGER_S))
        mine = published.query(self._data, feed.query)
        assert mine is not None, f"query {feed.query} is not published"
        ends = time.monotonic() + self._chance.expovariate(1 / self._stay_s)
        while not self.over.is_set() and feed.ended is None and (left := ends - time.monotonic()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    self._keep(feed), min(left, self._chance.expovariate(4 / self._stay_s))
                )
            if feed.ended is None:
                await self._wait(min(self._away_s, self._chance.expovariate(3 / self._away_s)))
        # What was sent until now he is to have had when he goes.
        reading = asyncio.create_task(self._keep(feed))
        try:
            await self._behind(self._day.rows, self._day.states, feed)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        await self._check(question, feed, mine)
        await self._stop(feed.query)

    async def _keep(self, feed: Feed) -> None:
        """Read whenever the gateway is there, until the feed ends."""
        while feed.ended is None and not feed.troubles:
            await self.up.wait()
            self._open += 1
            try:
                with suppress(OSError):
                    await feed.read()
            finally:
                self._open -= 1
            await asyncio.sleep(self._chance.uniform(0, 1))

    async def _behind(self, rows: int, states: int, feed: Feed | None = None) -> None:
        """Until the witnesses have had so many rows and states, and this feed is as far."""
        waited, last = 0.0, time.monotonic()
        while True:
            for witness in self.witnesses:
                witness.look()
            if all(
                len(witness.numbers) >= count
                for witness, count in zip(self.witnesses, (rows, states), strict=True)
            ):
                upto = max(
                    witness.numbers[count - 1]
                    for witness, count in zip(self.witnesses, (rows, states), strict=True)
                    if count
                )
                if feed is None or feed.ended is not None or feed.troubles or feed.position >= upto:
                    return
            await asyncio.sleep(0.5)
            now = time.monotonic()
            if self.up.is_set():
                waited += now - last
            last = now
            if waited > STALLED_S:
                what = (
                    "those who read everything"
                    if feed is None
                    else f"query {feed.query}, at row {feed.position}"
                )
                raise TimeoutError(f"{what}: no row came for {waited:.0f} s")

    async def _heard(self, position: int) -> None:
        """Until the witnesses have been told of all rows of the log up to this one."""
        while any(witness.feed.position < position for witness in self.witnesses):
            await asyncio.sleep(0.2)
        for witness in self.witnesses:
            witness.look()

    async def _check(self, question: Question, feed: Feed, mine: dict[str, Any]) -> None:
        witness = self.witnesses[question.aggregate]
        # What he had was perhaps before those who read everything had it.
        await self._heard(feed.position)
        [told] = mine["feeds"].values()
        _, _, _, _, since_ms, until_ms, _ = told
        # A feed that has finished has had all that is his.
        end = len(witness.numbers) if feed.ended == "finished" else witness.until(feed.position + 1)
        span = Span(witness.until(mine["position"]), end, since_ms, until_ms)
        expected = await asyncio.to_thread(question.expected, self._day, span)
        trouble = "; ".join(feed.troubles) or _difference(expected, feed.rows)
        if trouble:
            self.problems.append(f"query {feed.query}, {question.sql}, {span}: {trouble}")
        self.checked += 1
        self.rows += len(feed.rows)
        self.connections += feed.connections

    # ---- what all do ----

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), seconds)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            for witness in self.witnesses:
                witness.look()

    async def _ask(self, question: Question, linger_s: float | None) -> str:
        while True:
            await self.up.wait()
            try:
                answer = await self._http.post(
                    "/queries", json={"sql": question.sql, "linger_s": linger_s, "user": "crowd"}
                )
            except httpx.TransportError:
                self.unanswered += 1
                await asyncio.sleep(1)
                continue
            if answer.status_code == 503:
                self.unanswered += 1
                continue
            if answer.status_code != 201:
                raise RuntimeError(f"{answer.status_code} {answer.text}")
            return str(answer.json()["id"])

    async def _stop(self, query: str) -> None:
        while True:
            await self.up.wait()
            try:
                answer = await self._http.delete(f"/queries/{query}")
            except httpx.TransportError:
                await asyncio.sleep(1)
                continue
            if answer.status_code == 503:
                continue
            # One whose answer was cut off is gone when it is stopped again.
            if answer.status_code not in (200, 204, 404):
                raise RuntimeError(f"stopping query {query}: {answer.status_code} {answer.text}")
            return


def _difference(expected: Sequence[Sequence[Row]], got: Sequence[tuple[int, Row]]) -> str | None:
    """What is wrong, None where nothing is. Each part of what is expected may be in any order."""
    rows, begin = [row for _, row in got], 0
    for part in expected:
        found = rows[begin : begin + len(part)]
        if sorted(map(repr, found)) != sorted(map(repr, part)):
            return f"row {begin} of {len(rows)}, {sum(map(len, expected))} expected: {_first_difference(part, found)}"
        begin += len(part)
    return (
        None
        if begin == len(rows)
        else f"{len(rows) - begin} rows too many, {begin} expected: {rows[begin : begin + _TOLD]}"
    )


def _first_difference(expected: Sequence[Row], got: Sequence[Row]) -> str:
    lacking = [row for row in expected if row not in got][:_TOLD]
    beyond = [row for row in got if row not in expected][:_TOLD]
    return f"{len(expected)} expected, {len(got)} came; lacking {lacking}, beyond {beyond}" + (
        "" if lacking or beyond else ": the order, or one twice"
    )
