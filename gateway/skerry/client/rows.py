"""The rows of one query in Python: as they come, waiting or asynchronously, as Arrow and pandas; from a position on."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import httpx

from skerry.client.errors import ArgumentError, GatewayError, reason

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from skerry.client.client import Client

#: Attempts to reach a gateway that went away while rows were read, a second apart.
RECONNECTS = 60
#: A feed that says nothing for so long, in s, is dead: the gateway speaks each 15 s.
SILENCE_S = 60.0
#: What a proxy answers while the gateway behind it starts again.
_AWAY = (502, 503, 504)
_EVENTS = {"Accept": "text/event-stream"}
_ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
_ROW = "_row"


@dataclass(frozen=True, slots=True)
class Dropped:
    """Rows of the gateway's log, of any query, that a reader who was too slow does not get: ``first`` to ``last``, which arrived
    from ``since`` to ``until`` (UTC in s, None: not known)."""

    first: int
    last: int
    since: float | None
    until: float | None
    reason: str

    def __str__(self) -> str:
        return f"rows {self.first} to {self.last} of the log were dropped: {self.reason}"


class RowsDroppedWarning(UserWarning):
    """The reader was too slow, or came too late; :attr:`Rows.dropped` has the ranges."""


class _Again(Exception):
    """The feed broke, or the gateway asks to come later: after so many s."""

    def __init__(self, wait: float = 1.0) -> None:
        super().__init__()
        self.wait = wait


class Rows:
    """The rows of one query: iterate, also asynchronously, or take them as tables.

    Whatever way they are read, reading goes on behind :attr:`position`, also on a new connection when the gateway was away:
    each row comes once. One reading at a time.
    """

    def __init__(self, client: Client, description: Mapping[str, Any], position: int | None = None) -> None:
        self.id: str = description["id"]
        self.columns: list[dict[str, Any]] = description["columns"]
        #: The storage point on the motes that the rows go to: then none arrive here.
        self.into: str | None = description["into"]
        self.srt: str | None = description["srt"]
        #: The index that it keeps on the motes, and whether it is asked of one (:meth:`status` says what ``indexed`` motes have answered).
        self.index: str | None = description.get("index")
        self.of_index: bool = description.get("indexed") is not None
        #: What cannot have been meant by WHERE, as it is never true, or always; None: nothing.
        self.doubt: str | None = description.get("doubt")
        #: How the query is read where it leaves something open, as in ``each 10 s, as no SAMPLE PERIOD was given``.
        self.notes: list[str] = description.get("notes", [])
        #: Where it was asked: UTC in s of its first epoch, which begins where all motes can have heard of it; None: when its event comes.
        self.begins: float | None = description.get("begins")
        #: Number of the last row that was handed out, for :meth:`skerry.Client.resume`; None: none yet.
        self.position = position
        #: What was dropped because the reader was too slow; each comes with a RowsDroppedWarning too.
        self.dropped: list[Dropped] = []
        self._client = client
        #: Rows that were handed out of those behind the position: of a join, several have one number.
        self._ahead = 0

    @property
    def is_whole(self) -> bool:
        """Whether :attr:`position` is behind the row that was handed out last: of a join, several have one number."""
        return not self._ahead

    def stop(self) -> None:
        """Stop the query."""
        self._client.stop(self.id)

    def status(self) -> dict[str, Any]:
        """The query as the gateway has it now: ``begins`` (UTC in s), the events that it ``waits_for``, how many motes have
        ``answered`` and how many ``motes`` run it (None: not known), by whom and why it is ``refused``, why it is ``paused``.
        Raises GatewayError, also when it runs no more."""
        return self._client.described(self.id)

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *_: object) -> None:
        """The query is stopped."""
        with suppress(GatewayError):
            self.stop()

    # ---- rows ----

    def __iter__(self) -> Iterator[dict[str, Any]]:
        attempts = _Attempts(self._client.url)
        while True:
            try:
                yield from self._events(attempts)
                return
            except (httpx.TransportError, _Again) as error:
                time.sleep(attempts.failed(error))

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        attempts = _Attempts(self._client.url)
        async with self._client.asynchronous() as http:
            while True:
                try:
                    async for row in self._events_async(http, attempts):
                        yield row
                    return
                except (httpx.TransportError, _Again) as error:
                    await asyncio.sleep(attempts.failed(error))

    def _events(self, attempts: _Attempts) -> Iterator[dict[str, Any]]:
        events = _Events(self, attempts.succeeded)
        with self._client.http.stream("GET", self._path, **self._request(_EVENTS)) as response:
            if response.status_code != 200:
                response.read()
                raise _refusal(response)
            for line in response.iter_lines():
                row = events.line(line)
                if events.ended:
                    return
                if row is not None:
                    yield row
        raise _Again

    async def _events_async(
        self, http: httpx.AsyncClient, attempts: _Attempts
    ) -> AsyncIterator[dict[str, Any]]:
        events = _Events(self, attempts.succeeded)
        async with http.stream("GET", self._path, **self._request(_EVENTS)) as response:
            if response.status_code != 200:
                await response.aread()
                raise _refusal(response)
            async for line in response.aiter_lines():
                row = events.line(line)
                if events.ended:
                    return
                if row is not None:
                    yield row
        raise _Again

    @property
    def _path(self) -> str:
        return f"/queries/{self.id}/rows"

    def _request(self, headers: Mapping[str, str], silence_s: float = SILENCE_S) -> dict[str, Any]:
        """Arguments of a request for what is behind the position."""
        last = {} if self.position is None or self.position < 0 else {"Last-Event-ID": str(self.position)}
        return {"headers": {**headers, **last}, "timeout": httpx.Timeout(10, read=max(0.05, silence_s))}

    def _was_dropped(self, data: Mapping[str, Any]) -> None:
        dropped = Dropped(**data)
        self.dropped.append(dropped)
        self.position, self._ahead = dropped.last, 0
        warnings.warn(RowsDroppedWarning(str(dropped)), stacklevel=4)

    # ---- tables ----

    def batches(self, seconds: float | None = None) -> Iterator[pa.RecordBatch]:
        """Arrow batches as they come, for some time or until the query ends.

        The position is that of a batch's last row once the next one is asked for.
        """
        for batch in self._batches(seconds):
            yield _without_row(batch)
            self.position, self._ahead = batch.column(_ROW)[-1].as_py(), 0

    def to_arrow(self, rows: int | None = None, seconds: float | None = None) -> pa.Table:
        """The next rows: so many, or those of so long, whichever is reached first; with neither all until the query ends.
        Raises ArgumentError, a ValueError, for less than no rows."""
        import pyarrow as pa

        if rows is not None and rows < 0:
            raise ArgumentError(f"rows={rows}: expected how many rows to read, 0 or more, or None for all")

        parts: list[pa.RecordBatch] = []
        schema: list[pa.Schema] = []
        count = 0
        for batch in self._batches(seconds, schema.append) if rows != 0 else ():
            part = batch if rows is None else batch.slice(0, rows - count)
            count += part.num_rows
            parts.append(_without_row(part))
            self.position, self._ahead = part.column(_ROW)[-1].as_py(), 0
            if count == rows:
                break
        if parts:
            return pa.Table.from_batches(parts)
        return (schema[0] if schema else self._schema()).empty_table()

    def to_pandas(self, rows: int | None = None, seconds: float | None = None) -> pd.DataFrame:
        """The same as a data frame; integers with NULLs among them as pandas' Int64."""
        import pandas as pd
        import pyarrow as pa

        table = self.to_arrow(rows, seconds)
        return table.to_pandas(types_mapper=lambda kind: pd.Int64Dtype() if kind == pa.int64() else None)

    def _schema(self) -> pa.Schema:
        """What the gateway says without rows, once it is there."""
        attempts = _Attempts(self._client.url)
        while True:
            try:
                return self._told_schema()
            except (httpx.TransportError, _Again) as error:
                time.sleep(attempts.failed(error))

    def _told_schema(self) -> pa.Schema:
        import pyarrow as pa

        with self._client.http.stream("GET", self._path, **self._request(_ARROW)) as response:
            if response.status_code != 200:
                response.read()
                raise _refusal(response)
            return _user_schema(pa.ipc.open_stream(_Body(response)).schema)

    def _batches(
        self, seconds: float | None, schema: Callable[[pa.Schema], None] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches with rows, their numbers included."""
        attempts = _Attempts(self._client.url)
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            try:
                yield from self._arrow(until, schema, attempts)
                return
            except (httpx.TransportError, _Again) as error:
                if until is not None and time.monotonic() >= until:
                    return
                time.sleep(attempts.failed(error))

    def _arrow(
        self, until: float | None, schema: Callable[[pa.Schema], None] | None, attempts: _Attempts
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        silence = SILENCE_S if until is None else min(SILENCE_S, until - time.monotonic())
        with self._client.http.stream("GET", self._path, **self._request(_ARROW, silence)) as response:
            if response.status_code != 200:
                response.read()
                raise _refusal(response)
            try:
                with _ending(response, until), pa.ipc.open_stream(_Body(response)) as stream:
                    if schema is not None:
                        schema(_user_schema(stream.schema))
                    # Each feed begins with a position, which says no more than that it is open.
                    _, begins = stream.read_next_batch_with_custom_metadata()
                    self.position = int(begins[b"skerry.data"])
                    while until is None or time.monotonic() < until:
                        batch, told = stream.read_next_batch_with_custom_metadata()
                        attempts.succeeded()
                        if batch.num_rows:
                            yield batch
                        elif told[b"skerry.event"] == b"end":
                            return
                        elif told[b"skerry.event"] == b"refused":
                            raise GatewayError(json.loads(told[b"skerry.data"]))
                        elif told[b"skerry.event"] == b"dropped":
                            self._was_dropped(json.loads(told[b"skerry.data"]))
                        else:
                            self.position = int(told[b"skerry.data"])
            except (StopIteration, pa.ArrowInvalid, EOFError):
                raise _Again from None


@contextmanager
def _ending(response: httpx.Response, until: float | None) -> Iterator[None]:
    """While a feed is read until a time (s, monotonic), which ends whoever waits for its next bytes then: a timeout begins anew with each
    of them."""
    if until is None:
        yield
        return
    connection = response.extensions["network_stream"].get_extra_info("socket")

    def end() -> None:
        # Not the method, which of a TLS connection takes away what is being read with.
        with suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RD)

    timer = threading.Timer(max(0.0, until - time.monotonic()), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Body:
    """A response as the file that Arrow reads: whole pieces, or what is left at the end."""

    closed = False

    def __init__(self, response: httpx.Response) -> None:
        self._chunks = response.iter_raw()
        self._rest = b""

    def read(self, size: int) -> bytes:
        """So many bytes, fewer only at the end."""
        pieces, missing = [self._rest], size - len(self._rest)
        while missing > 0:
            piece = next(self._chunks, b"")
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        data = b"".join(pieces)
        self._rest = data[size:]
        return data[:size]

    def readable(self) -> bool:
        """Yes."""
        return True

    def close(self) -> None:
        """The response is closed by who opened it."""


class _Events:
    """Lines of server-sent events → rows."""

    def __init__(self, rows: Rows, heard: Callable[[], None] = lambda: None) -> None:
        """``heard``: called when an event has come, also one that only says how far the feed has come."""
        self._rows, self._heard = rows, heard
        self._event: dict[str, str] = {}
        self._moments = [column["name"] for column in rows.columns if column["type"] == "timestamp"]
        self._skip = rows._ahead
        self.ended = False

    def line(self, line: str) -> dict[str, Any] | None:
        """A row, when this line completes one. Raises GatewayError."""
        if line:
            name, _, value = line.partition(":")
            self._event[name] = value.strip()
            return None
        event, self._event = self._event, {}
        kind = event.get("event")
        if kind is not None or "id" in event:
            self._heard()
        if kind == "dropped":
            self._rows._was_dropped(json.loads(event["data"]))
            self._skip = 0
            return None
        if kind == "refused":
            raise GatewayError(event["data"])
        if "id" in event:
            self._rows.position = int(event["id"])
        self.ended = kind == "end"
        if kind != "row":
            return None
        complete = "id" in event
        if self._skip:
            # What the connection before had brought already.
            self._skip = 0 if complete else self._skip - 1
            self._rows._ahead = 0 if complete else self._rows._ahead
            return None
        self._rows._ahead = 0 if complete else self._rows._ahead + 1
        row: dict[str, Any] = json.loads(event["data"])
        for name in self._moments:
            row[name] = datetime.fromisoformat(row[name]) if row[name] is not None else None
        return row


class _Attempts:
    """How often the gateway was not there in a row, or had nothing to say."""

    def __init__(self, url: str) -> None:
        self._url, self._failures = url, 0

    def succeeded(self) -> None:
        """Something came."""
        self._failures = 0

    def failed(self, error: Exception) -> float:
        """Seconds to wait before the next. Raises GatewayError after too many."""
        self._failures += 1
        if self._failures > RECONNECTS:
            raise GatewayError(f"{self._url}: the gateway does not come back") from None
        return error.wait if isinstance(error, _Again) else 1.0


def _refusal(response: httpx.Response) -> Exception:
    """An answer that is no feed; of a user who does too much, or of a proxy that cannot reach the gateway, when to come again."""
    wait = response.headers.get("Retry-After", "")
    if response.status_code == 429 and wait.isdigit():
        return _Again(float(wait))
    # The gateway's own say in JSON what is the matter.
    if response.status_code in _AWAY and "json" not in response.headers.get("Content-Type", ""):
        return _Again()
    return GatewayError(reason(response))


def _without_row(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.drop_columns([_ROW])


def _user_schema(schema: pa.Schema) -> pa.Schema:
    return schema.remove(schema.get_field_index(_ROW))
