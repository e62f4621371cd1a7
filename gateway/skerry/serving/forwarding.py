"""What is the gateway's to answer goes on to it byte for byte, and its answer comes back as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
from starlette.types import Receive, Scope, Send

#: Headers of a connection, which are not the request's. Source: RFC 9110, 7.6.1.
_OF_CONNECTION = {
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer", b"transfer-encoding", b"upgrade",
}  # fmt: skip


class Forwarding:
    """An application that asks another one. ``options``: of :class:`httpx.AsyncClient`, its address among them."""

    def __init__(self, options: dict[str, Any]) -> None:
        # Feeds are silent for as long as they like.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
        self.client = httpx.AsyncClient(
            **options, timeout=httpx.Timeout(10, read=None, pool=None), limits=limits
        )
        self.client.headers.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, until one side ends it."""
        gone = asyncio.Event()
        answering = asyncio.ensure_future(self._answer(scope, receive, send, gone))
        leaving = asyncio.ensure_future(gone.wait())
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (answering, leaving):
                task.cancel()
            ended, _ = await asyncio.gather(answering, leaving, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended

    async def _answer(self, scope: Scope, receive: Receive, send: Send, gone: asyncio.Event) -> None:
        path = scope.get("raw_path") or scope["path"].encode()
        target = path + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        url = self.client.base_url.copy_with(raw_path=target)
        headers = [(name, value) for name, value in scope["headers"] if name not in _OF_CONNECTION]
        sent = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
        listening = asyncio.ensure_future(_listen(receive, gone)) if not sent else None
        body = _body(receive) if sent else None
        request = httpx.Request(scope["method"], url, headers=headers, content=body)
        try:
            response = await self.client.send(request, stream=True)
        except httpx.TransportError as error:
            await away(send, f"the gateway is not reached from here: {type(error).__name__}")
            return
        if listening is None:
            listening = asyncio.ensure_future(_listen(receive, gone))
        try:
            kept = [
                (name, value) for name, value in response.headers.raw if name.lower() not in _OF_CONNECTION
            ]
            await send({"type": "http.response.start", "status": response.status_code, "headers": kept})
            async for part in response.aiter_raw():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except httpx.TransportError as error:
            # The connection breaks off without the end of the body, as the gateway's did.
            raise BrokenOffError(str(error)) from None
        finally:
            listening.cancel()
            await response.aclose()


class BrokenOffError(Exception):
    """The gateway's answer has no end."""


async def away(send: Send, why: str) -> None:
    """Answer that it is worth coming again. In plain text, as proxies do: what is the gateway's own word is JSON."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"retry-after", b"1")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise asyncio.CancelledError
        yield message.get("body", b"")
        more = message.get("more_body", False)


async def _listen(receive: Receive, gone: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()
