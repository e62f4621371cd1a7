"""When there are too many connections: an answer like every other. The server's own limit answers in plain text."""

from __future__ import annotations

from collections.abc import Sized

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class Crowded:
    """An application, for so many ``connections`` at once, which the server counts; what comes by one of more is answered 503."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most
        self.connections: Sized = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and len(self.connections) > self._most:
            message = f"the gateway has {self._most} connections, and that is the most: close one, or raise 'ulimit -Hn' where it runs"
            app = JSONResponse({"message": message}, status_code=503, headers={"Connection": "close"})
        await app(scope, receive, send)
