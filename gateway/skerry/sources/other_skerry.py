"""A query of another skerry as a stream of this one: ``skerry+http://host:8642/QUERY``, or ``skerry+http://host:8642?sql=SELECT …``, which
is asked there; also ``skerry+https``. ``user:{secret:token}@`` before the host says who asks.

Where in its rows reading goes on is kept in the log: each comes once, also over restarts of either gateway, while the other one has the
query. One that was asked from here it has for so long as ``keep=`` says without a reader.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from typing import Any, ClassVar
from urllib.parse import unquote

from skerry.client import own_queries
from skerry.client.client import Client
from skerry.client.errors import ArgumentError, GatewayError
from skerry.client.rows import Rows, RowsDroppedWarning
from skerry.sources.http_polling import seconds
from skerry.sources.opening import called
from skerry.sources.stream_type import AddressError, Read, Sensor, Signal, StreamType, Value

#: Rows that wait, and that are handed on at a time.
_ROWS = 4096
KEEP_S, _TRIAL_S = 3600.0, 60.0


class OtherSkerry(StreamType):
    """A row has the columns that its query shows there."""

    options: ClassVar[frozenset[str] | None] = frozenset({"sql", "keep"})
    reads_tuple: ClassVar[bool] = False

    async def init(self, sensor: Sensor) -> None:
        """Find the query there, or ask it."""
        url, options = sensor.url, sensor.options
        self._sql, query = options.get("sql"), url.path.strip("/")
        if bool(query) == bool(self._sql):
            raise AddressError(
                f"'{sensor.address}' says not which query: write skerry+http://host:8642/QUERY, or ?sql=SELECT …"
            )
        self._keep_s = _TRIAL_S if sensor.trial else seconds(options.get("keep", f"{KEEP_S}s"), "keep")
        self._trial = sensor.trial
        scheme, host = url.scheme.lower().removeprefix("skerry+"), url.netloc.rpartition("@")[2]
        try:
            user, token = unquote(url.username or "") or None, unquote(url.password or "") or None
            self._client = Client(f"{scheme}://{host}", user, token)
        except (ArgumentError, ValueError) as error:
            raise AddressError(str(error)) from None
        position = json.loads(sensor.position) if sensor.position is not None else None
        try:
            self._rows = await called(self._found, query, position)
        except ArgumentError as error:
            raise AddressError(f"sql={self._sql}: {error}") from None
        except GatewayError as error:
            raise ConnectionError(str(error)) from None
        self.position = (
            sensor.position if position is not None and self._rows.id == position[0] else self._text()
        )
        #: Rows with the position behind them, None: there is none between rows of one number; what ends them.
        self._queue = asyncio.Queue[tuple[dict[str, Any], str | None] | Exception | Signal](_ROWS)
        self._last: Exception | Signal | None = None
        self._task = asyncio.get_running_loop().create_task(self._pump())

    def _found(self, query: str, position: tuple[str, int | None] | None) -> Rows:
        if position is not None:
            there = [entry["id"] for entry in self._client.queries()]
            if position[0] in there:
                return self._client.resume(position[0], position[1])
        if self._sql is None:
            return self._client.resume(query)
        rows = self._client.query(self._sql, self._keep_s)
        # It is read again when this process has ended.
        own_queries.discard(self._client, rows.id)
        return rows

    def _text(self) -> str:
        return json.dumps([self._rows.id, self._rows.position])

    async def _pump(self) -> None:
        with warnings.catch_warnings():
            # They are told in another way.
            warnings.simplefilter("ignore", RowsDroppedWarning)
            try:
                async for row in self._rows:
                    await self._queue.put((row, self._text() if self._rows.is_whole else None))
                    if self._rows.dropped:
                        self.note = str(self._rows.dropped[-1])
                await self._queue.put(Signal.END)
            except Exception as error:
                await self._queue.put(error)

    async def read(self) -> Read:
        """The rows that have come."""
        found, last, text = list[Value](), self._last, None
        while last is None and (not found or not self._queue.empty()) and len(found) < _ROWS:
            word = await self._queue.get()
            if isinstance(word, tuple):
                row, text = word
                found.append(row)
            else:
                last = self._last = word
        if found:
            if text is not None:
                self.position = text
            return found
        if isinstance(last, Exception):
            raise ConnectionError(str(last)) from last
        return Signal.END

    async def close(self) -> None:
        """Hang up. The query there goes on for a while."""
        task = getattr(self, "_task", None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if self._trial and self._sql is not None:
                await called(self._rows.stop)
        client = getattr(self, "_client", None)
        if client is not None:
            client.http.close()
