"""What a request gets that is still going when the server ends: an answer like every other. The server's own is a plain 500."""

from __future__ import annotations

import asyncio

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Ending:
    """An application, whose requests are cancelled at the server's end; what has no answer by then is answered 503."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except asyncio.CancelledError:
            if started or scope["type"] != "http":
                raise
            message = "the gateway is being stopped, and did not wait for this to end: ask again when it runs, it may have been done"
            await JSONResponse({"message": message}, status_code=503, headers={"Connection": "close"})(
                scope, receive, send
            )
