"""Server-sent events: ``sse+http://host/feed``, also ``sse+https``. The data of each event is a row.

When the connection ends, or the gateway has been away, the server is asked for what came behind the last event (``Last-Event-ID``): where
it numbers its events and keeps them, each comes once.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, ClassVar

import httpx
from httpx_sse import EventSource, ServerSentEvent, SSEError, aconnect_sse

from skerry.sources import certificates, http_request
from skerry.sources.stream_type import Read, Sensor, Signal, StreamType

_OWN = frozenset({"format", "event"})
_CONNECT_S = 10.0
#: An event is not longer than so many bytes, which come as they are.
_MOST_BYTES = 16 << 20
_ENDS = re.compile(rb"\n\r?\n|\r\r")
_IDENTITY = {"Accept-Encoding": "identity"}
#: Without a word, a comment among them, a server is called again, in s.
SILENCE_S = 300.0


class ServerSentEvents(StreamType):
    """With ``event=name`` only events of that name are rows."""

    #: Any: what is not its own goes to the server.
    options: ClassVar[frozenset[str] | None] = None
    reads_tuple: ClassVar[bool] = False

    async def init(self, sensor: Sensor) -> None:
        """Connect."""
        url, headers = http_request.request(sensor, _OWN, sensor.url.scheme.lower().removeprefix("sse+"))
        self._event = sensor.options.get("event")
        self.position = sensor.position
        #: The last event's id, and how many that have none came behind it.
        self._last, self._behind = "", 0
        if sensor.position is not None:
            self._last, self._behind = json.loads(sensor.position)
        sent: dict[str, Any] = {**headers, **_IDENTITY}
        if self._last:
            sent["Last-Event-ID"] = self._last.encode()
        self._open = AsyncExitStack()
        self._url = url
        timeout, trusted = httpx.Timeout(_CONNECT_S, read=SILENCE_S), certificates.verifying(url)
        try:
            client = await self._open.enter_async_context(
                httpx.AsyncClient(timeout=timeout, trust_env=False, verify=trusted)
            )
            source = await self._open.enter_async_context(aconnect_sse(client, "GET", url, headers=sent))
        except (httpx.RequestError, httpx.InvalidURL) as error:
            raise http_request.why(error, self._url) from None
        # 204 says that there will be nothing more.
        self._ended = source.response.status_code == 204
        if not source.response.is_success:
            raise http_request.refused(source.response)
        assert isinstance(source.response.stream, httpx.AsyncByteStream)
        source.response.stream = _Bounded(source.response.stream)
        self._events: AsyncIterator[ServerSentEvent] = _events(source)

    async def read(self) -> Read:
        """The data of the next event."""
        if self._ended:
            return Signal.END
        try:
            event = await anext(self._events)
        except StopAsyncIteration:
            raise ConnectionResetError("it has hung up") from None
        except httpx.RequestError as error:
            raise http_request.why(error, self._url) from None
        except SSEError as error:
            raise ConnectionError(f"it sends no events: {error}") from None
        # What has no id of its own has that of the one before.
        is_numbered = event.id not in ("", self._last) and event.id.isprintable()
        self._last, self._behind = (event.id, 0) if is_numbered else (self._last, self._behind + 1)
        if self._last:
            # It is another with each event: those without an id are not counted on to come again.
            self.position = json.dumps([self._last, self._behind])
        if not event.data.strip() or (self._event is not None and event.event != self._event):
            return Signal.NO_VALUE
        return event.data.encode()

    async def close(self) -> None:
        """Hang up."""
        opened = getattr(self, "_open", None)
        if opened is not None:
            await opened.aclose()


class _Bounded(httpx.AsyncByteStream):
    """Bytes of a feed, as long as an event ends now and then."""

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ConnectionError: an event is too long."""
        since = 0
        async for part in self._stream:
            since = 0 if _ENDS.search(part) else since + len(part)
            if since > _MOST_BYTES:
                raise ConnectionError(f"it sends an event of more than {_MOST_BYTES >> 20} MB")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _events(source: EventSource) -> AsyncIterator[ServerSentEvent]:
    async for event in source.aiter_sse():
        yield event
