"""Requests whose bodies nobody needs so large: answered before they are read, whoever sends them."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Bytes of a body at most. A query of that length is planned in seconds, in which no row is taken in.
BODY_MAXIMUM = 65_536


class Bounded:
    """An application that reads no more than :data:`BODY_MAXIMUM` bytes of a body: HTTPException 413."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        came = 0

        async def bounded() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > BODY_MAXIMUM:
                raise HTTPException(
                    413, f"the body has more than {BODY_MAXIMUM} bytes, which is the most: send less at once"
                )
            return message

        await self._app(scope, bounded, send)
