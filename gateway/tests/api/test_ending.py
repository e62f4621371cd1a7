"""Requests that a server's end cuts off."""

from __future__ import annotations

import asyncio
import socket

import httpx
import uvicorn
from starlette.types import Receive, Scope, Send

from skerry.api.ending import Ending
from skerry.api.server import Server


def test_what_has_no_answer_when_the_server_ends_is_told_so_and_what_has_begun_is_cut_off() -> None:
    async def application(scope: Scope, _: Receive, send: Send) -> None:
        if scope["path"] == "/begun":
            await send({"type": "http.response.start", "status": 200, "headers": []})
        under_way.release()
        await asyncio.Event().wait()

    async def ended() -> tuple[httpx.Response | BaseException, httpx.Response | BaseException]:
        bound = socket.create_server(("127.0.0.1", 0))
        server = Server(
            uvicorn.Config(
                Ending(application), log_level="error", lifespan="off", timeout_graceful_shutdown=1
            )
        )
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{bound.getsockname()[1]}", timeout=None
        ) as client:
            asked = asyncio.gather(client.get("/waits"), client.get("/begun"), return_exceptions=True)
            for _ in range(2):
                await under_way.acquire()
            server.should_exit = True
            waited, begun = await asked
        await serving
        return waited, begun

    under_way = asyncio.Semaphore(0)
    waited, begun = asyncio.run(ended())
    assert isinstance(waited, httpx.Response)
    assert waited.status_code == 503
    assert "being stopped" in waited.json()["message"]
    assert isinstance(begun, httpx.TransportError)
