"""What a worker answers itself, which are feeds, and what it lets the gateway answer, which is all else."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import httpx
from fastapi import FastAPI, Header, Request
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from skerry.api.access import Access, Caller
from skerry.api.errors import answer_errors
from skerry.api.feeds import AwayError, Bell, FeedResponse, answer
from skerry.serving.forwarding import Forwarding, away
from skerry.serving.worker import Worker

#: A new reader waits so long for a gateway that is away, in s.
OPEN_S = 10.0
_FEED = re.compile(r"/queries/[^/]+/rows")


class _Said(Exception):
    """What the gateway says of a reader, in place of a feed."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(answer.status_code)
        kept = {
            name: value for name, value in answer.headers.items() if name in ("content-type", "retry-after")
        }
        self.response = Response(answer.content, answer.status_code, kept)


class _Forwarded(Response):
    """The gateway's response."""

    def __init__(self, forwarding: Forwarding) -> None:
        super().__init__()
        self._forwarding = forwarding

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the gateway answer."""
        await self._forwarding(scope, receive, send)


class _Away(Response):
    """The gateway is away."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Say so."""
        del scope, receive
        await away(send, "the gateway is away: come again")


class _Counted(FeedResponse):
    """A feed whose reader is counted until it ends, also before it has begun."""

    def __init__(self, inner: FeedResponse, ended: Callable[[], object]) -> None:
        self.__dict__.update(inner.__dict__)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until one side ends it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


class Serving:
    """The application. ``options``: of :class:`httpx.AsyncClient`, for the gateway as a worker asks it."""

    def __init__(
        self, worker: Worker, access: Access, forwarding: Forwarding, options: dict[str, Any]
    ) -> None:
        self._worker, self._access, self._forwarding = worker, access, forwarding
        limits = httpx.Limits(max_connections=20)
        self._gateway = httpx.AsyncClient(**options, timeout=httpx.Timeout(10, pool=None), limits=limits)
        self._bell: Bell | None = None
        self._feeds = FastAPI(openapi_url=None)
        answer_errors(self._feeds)
        self._feeds.get("/queries/{query}/rows")(self._rows)
        self._feeds.exception_handler(_Said)(_say)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request."""
        if scope["type"] != "http":
            return
        own = scope["method"] == "GET" and _FEED.fullmatch(scope["path"])
        await (self._feeds if own else self._forwarding)(scope, receive, send)

    async def _rows(
        self,
        query: str,
        request: Request,
        user: str | None = None,
        host: Annotated[str | None, Header()] = None,
        accept: Annotated[str | None, Header()] = None,
        last_event_id: Annotated[str | None, Header()] = None,
        authorization: Annotated[str | None, Header()] = None,
        after: str | None = None,
    ) -> Response:
        del request
        caller = self._access.known(authorization, user, host)
        try:
            asked = await self._worker.open(query, partial(self._count, query, caller), OPEN_S)
        except AwayError:
            return _Away()
        if asked is None:
            return _Forwarded(self._forwarding)
        if self._bell is None:
            self._bell = Bell()
        try:
            await self._worker.sees(last_event_id or after)
            feed = answer(
                self._worker, asked, accept, last_event_id or after, partial(self._refusal, caller, authorization), self._bell
            )  # fmt: skip
        except BaseException:
            self._worker.close(query)
            raise
        return _Counted(feed, partial(self._worker.close, query))

    def _refusal(self, caller: Caller, authorization: str | None) -> str | None:
        self._worker.check_there()
        return self._access.refusal(caller, authorization)

    async def _count(self, query: str, caller: Caller, number: int) -> bool | None:
        """Whether workers serve a reader, who is counted at the gateway then; None: it is to be asked again. Raises _Said."""
        try:
            said = await self._gateway.post(
                f"/workers/{number}/readers", json={"query": query, "user": caller.user}
            )
        except httpx.TransportError:
            return None
        if said.status_code in (410, 502, 503, 504):
            return None
        if said.status_code != 200:
            raise _Said(said)
        return bool(said.json()["served"])


async def _say(request: Request, said: Exception) -> Response:
    del request
    assert isinstance(said, _Said)
    return said.response
