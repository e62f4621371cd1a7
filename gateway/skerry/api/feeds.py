"""Feeds over HTTP: one loop for each, which waits for rows, and two ways to write them: server-sent events and Arrow."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
from fastapi import HTTPException
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from skerry.api.services import Feeds
from skerry.execution.deliveries import Delivery
from skerry.service.queries import UnknownQueryError, UserQuery
from skerry.service.reader import Dropped, Portion, Reader
from skerry.sql.row_text import json_text

SSE = "text/event-stream"
ARROW = "application/vnd.apache.arrow.stream"
#: The column of an Arrow feed that tells each row's number, from which a reader resumes.
ROW = "_row"
#: Silent feeds are looked after so often, in s: has a query been stopped, or ended?
LOOK_S = 1.0
#: … so many at a time.
LOOK_AT = 256
#: After so much silence in s a feed says how far it has come: its reader keeps that, and a dead connection is noticed.
MARK_S = 15.0
#: Rows written at a time: what a reader who stops reading holds in memory.
CHUNK_ROWS = 1024
#: Who reads the past may wait minutes for its engine, and takes no thread from those who are behind, who need one for a moment.
_PAST, _BEHIND = (
    ThreadPoolExecutor((os.cpu_count() or 1) + 4, name) for name in ("the past's readers", "readers behind")
)
#: Digits of a row's number at most.
_DIGITS = 19


class Writer(Protocol):
    """How a feed is written; each method returns bytes to send."""

    media_type: str

    def begin(self, position: int) -> bytes:
        """Once: rows behind this position follow."""

    def rows(self, delivery: Delivery) -> bytes:
        """Some rows."""

    def mark(self, position: int) -> bytes:
        """No row of his up to this one."""

    def dropped(self, dropped: Dropped) -> bytes:
        """Rows that he does not get."""

    def end(self, why: str) -> bytes:
        """No more can come: the query is ``finished`` or ``stopped``."""

    def refused(self, why: str) -> bytes:
        """More may come, but not to him."""


class EventWriter:
    """Server-sent events: ``row``, ``dropped``, ``end``, ``refused``. An event's id is a row's number in the log."""

    media_type = SSE

    def begin(self, position: int) -> bytes:
        """A comment: the headers go out at once."""
        return f": rows behind {position} follow\n\n".encode()

    def rows(self, delivery: Delivery) -> bytes:
        """An event each. Of several rows with one number (of a join, of windows) only the last has an id: who resumes gets them all,
        and can tell how many he has had."""
        following = np.append(delivery.numbers[1:], -1)
        rows = zip(delivery.numbers.tolist(), following.tolist(), delivery.columns.to_pylist(), strict=True)
        return "".join(
            ("" if number == after else f"id: {number}\n") + f"event: row\ndata: {json_text(values)}\n\n"
            for number, after, values in rows
        ).encode()

    def mark(self, position: int) -> bytes:
        """An id without an event: clients remember it as the last one."""
        return f"id: {position}\n\n".encode()

    def dropped(self, dropped: Dropped) -> bytes:
        """An event with what was dropped."""
        data = json.dumps(dataclasses.asdict(dropped))
        return f"id: {dropped.last}\nevent: dropped\ndata: {data}\n\n".encode()

    def end(self, why: str) -> bytes:
        """The last event."""
        return f"event: end\ndata: {why}\n\n".encode()

    def refused(self, why: str) -> bytes:
        """The last event, too."""
        return f"event: refused\ndata: {why}\n\n".encode()


class ArrowWriter:
    """An Arrow IPC stream: the user's columns behind :data:`ROW`. What is no row is told in the metadata of empty batches:
    ``skerry.event`` is ``position``, ``dropped``, ``end`` or ``refused``, ``skerry.data`` its JSON."""

    media_type = ARROW

    def __init__(self, query: UserQuery, schema: pa.Schema) -> None:
        units = {output.name: output.unit for output in query.plan.shown}
        fields = [field.with_metadata({"unit": units[field.name]}) for field in schema]
        self._schema = pa.schema(
            [pa.field(ROW, pa.int64(), nullable=False), *fields], {"skerry.query": query.id}
        )
        self._sink = io.BytesIO()
        self._stream = pa.ipc.new_stream(self._sink, self._schema)

    def _taken(self) -> bytes:
        data = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return data

    def _event(self, event: str, data: object) -> bytes:
        empty = self._schema.empty_table().to_batches() or [
            pa.RecordBatch.from_pylist([], schema=self._schema)
        ]
        self._stream.write_batch(
            empty[0], custom_metadata={"skerry.event": event, "skerry.data": json.dumps(data)}
        )
        return self._taken()

    def begin(self, position: int) -> bytes:
        """The schema, which Arrow writes with the first batch."""
        return self.mark(position)

    def rows(self, delivery: Delivery) -> bytes:
        """A batch."""
        arrays = [pa.array(delivery.positions), *delivery.columns.columns]
        self._stream.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        return self._taken()

    def mark(self, position: int) -> bytes:
        """A position without rows."""
        return self._event("position", position)

    def dropped(self, dropped: Dropped) -> bytes:
        """What was dropped."""
        return self._event("dropped", dataclasses.asdict(dropped))

    def end(self, why: str) -> bytes:
        """The end of the stream, and why."""
        return self._last("end", why)

    def refused(self, why: str) -> bytes:
        """The same."""
        return self._last("refused", why)

    def _last(self, event: str, why: str) -> bytes:
        last = self._event(event, why)
        self._stream.close()
        return last + self._taken()


class Bell:
    """Wakes the feeds of one event loop from other threads: one call into the loop for all that a batch has rows for, and one look
    after all that are silent. Thousands with a clock each would keep the loop busy while nothing comes."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._woken: list[asyncio.Event] = []
        self._lock = threading.Lock()
        self._silent: dict[asyncio.Event, Callable[[], bool]] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def looking(self, event: asyncio.Event, due: Callable[[], bool]) -> Iterator[None]:
        """While a feed is open, ``event`` is also set within :data:`LOOK_S` once ``due()``, which must return at once. In the loop."""
        self._silent[event] = due
        if self._looking is None:
            self._looking = self._loop.create_task(self._look())
        try:
            yield
        finally:
            del self._silent[event]

    async def _look(self) -> None:
        while self._silent:
            await asyncio.sleep(LOOK_S)
            for i, (event, due) in enumerate(list(self._silent.items())):
                if i % LOOK_AT == LOOK_AT - 1:
                    # Those who have rows come in between.
                    await asyncio.sleep(0)
                try:
                    silent = not due()
                except Exception:
                    # What is wrong with one feed meets that one, when it reads.
                    silent = False
                if not silent:
                    event.set()
        self._looking = None

    def ring(self, event: asyncio.Event) -> None:
        """From any thread; returns at once."""
        with self._lock:
            self._woken.append(event)
            if len(self._woken) > 1:
                return
        # The server may have ended, which the proxy's thread must not mind.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        with self._lock:
            woken, self._woken = self._woken, []
        for event in woken:
            event.set()


class FeedResponse(StreamingResponse):
    """A response without end that is over as soon as its client is gone, also while nothing is to be sent."""

    def __init__(self, content: AsyncGenerator[bytes, None], media_type: str) -> None:
        # Proxies between must not collect rows, and keep none.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Vary": "Accept"}
        super().__init__(content, media_type=media_type, headers=headers)
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until one side ends it."""
        del scope
        sending = asyncio.ensure_future(self.stream_response(send))
        gone = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, gone):
                task.cancel()
            ended, _ = await asyncio.gather(sending, gone, return_exceptions=True)
            await self._content.aclose()
        if isinstance(ended, Exception):
            # The server logs it, and breaks the connection off without the end of the body: the client knows that there is more.
            raise ended


class AwayError(Exception):
    """The gateway is away, so that there is nothing to be had for some time."""


def position_of(feeds: Feeds, text: str | None) -> int | None:
    """Where a reader says he is: the number of a row of the log. Raises HTTPException."""
    # A feed that has not brought a row yet is at -1.
    if text is None or text == "-1":
        return None
    # Python makes no number of thousands of digits.
    # An answer over a log without rows is at 0 all the same.
    if not text.isdecimal() or len(text) > _DIGITS or int(text) > max(feeds.rows - 1, 0):
        raise HTTPException(
            400,
            f"position {text!r}: expected the id of an event of this query, or the last {ROW} of its Arrow stream; "
            f"the log ends before row {feeds.rows}",
        )
    return int(text)


def answer(
    feeds: Feeds,
    query: UserQuery,
    accept: str | None,
    position: str | None,
    refusal: Callable[[], str | None],
    bell: Bell,
) -> FeedResponse:
    """A query's feed in the kind that its reader accepts, from where he says he is. Raises HTTPException."""
    chosen = media_type(accept)
    if chosen is None:
        raise HTTPException(406, f"Accept {accept}: rows are given as {SSE} or {ARROW}")
    reader = feeds.reader(query, position_of(feeds, position))
    writer = EventWriter() if chosen == SSE else ArrowWriter(query, reader.schema)
    return FeedResponse(feed(feeds, query, reader, writer, refusal, bell), chosen)


async def feed(
    feeds: Feeds,
    query: UserQuery,
    reader: Reader,
    writer: Writer,
    refusal: Callable[[], str | None],
    bell: Bell,
) -> AsyncGenerator[bytes, None]:
    """A query's feed as bytes, until the query ends, or until there is a ``refusal``: why its reader may have no more of it."""
    woken, spoken, waits = asyncio.Event(), time.monotonic(), False

    def due() -> bool:
        return waits or reader.due or time.monotonic() - spoken >= MARK_S or refusal() is not None

    with (
        closing(reader),
        feeds.reading(query, partial(bell.ring, woken)),
        bell.looking(woken, due),
    ):
        yield writer.begin(reader.position)
        while True:
            woken.clear()
            try:
                if (refused := refusal()) is not None:
                    break
            except AwayError:
                # Without its end: readers come again, and go on where they were.
                return
            # What is asked before reading holds for what is read.
            over = query.finished and feeds.caught_up(query)
            try:
                # Threads are for those who are behind: a change of threads costs more than a few rows.
                portion = reader.read() if reader.near else await _in_thread(reader)
            except UnknownQueryError:
                # It may have gone with its user, who is told that.
                with suppress(AwayError):
                    refused = refusal()
                if refused is not None:
                    break
                yield writer.end("stopped")
                return
            if portion.refused is not None:
                refused = portion.refused
                break
            if portion.dropped is not None:
                yield writer.dropped(portion.dropped)
            for part in _chunks(portion.deliveries):
                yield writer.rows(part)
            if portion.deliveries or portion.dropped:
                spoken = time.monotonic()
            if portion.more:
                continue
            if over and not portion.waits:
                yield writer.end("finished")
                return
            if time.monotonic() - spoken >= MARK_S:
                yield writer.mark(portion.position)
                spoken = time.monotonic()
            waits = portion.waits
            await woken.wait()
        yield writer.refused(refused)


async def _in_thread(reader: Reader) -> Portion:
    threads = _PAST if reader.in_past else _BEHIND
    return await asyncio.get_running_loop().run_in_executor(threads, reader.read)


def _chunks(deliveries: list[Delivery]) -> Iterator[Delivery]:
    """The same rows, in parts that are small enough to be held for a reader who does not read; rows of one number together."""
    for whole in deliveries:
        numbers, begin = whole.numbers, 0
        while begin < len(numbers):
            # Rows that one row of the log brought stay together: a reader resumes behind all of them.
            last = numbers[min(begin + CHUNK_ROWS, len(numbers)) - 1]
            end = int(np.searchsorted(numbers, last, side="right"))
            yield Delivery(numbers[begin:end], whole.columns.slice(begin, end - begin))
            begin = end


def media_type(accept: str | None) -> str | None:
    """What to answer to an Accept header: server-sent events where both will do; None: neither will."""
    quality = {SSE: 0.0, ARROW: 0.0}
    ranges: list[tuple[int, str, float]] = []
    for entry in (accept or "*/*").split(","):
        name, *parameters = (part.strip().lower() for part in entry.split(";"))
        q = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        with suppress(ValueError):
            ranges.append((name.count("*"), name, float(q)))
    # The most particular range that fits a type counts.
    for _, name, wanted in sorted(ranges, reverse=True):
        for known in quality:
            if name in (known, "*/*", known.split("/", maxsplit=1)[0] + "/*"):
                quality[known] = wanted
    best = max(quality, key=lambda known: quality[known])
    return best if quality[best] > 0 else None
