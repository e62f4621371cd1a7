"""Where processes that serve readers connect: one answer that goes on with news for as long as a worker is there, and what it reports."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from fastapi import Depends, FastAPI

from skerry.api.access import Access, AccessError, Caller
from skerry.api.body import Closed, Connecting, Reading
from skerry.api.feeds import FeedResponse
from skerry.api.operator import shows_key
from skerry.api.services import ApiWorkers, Queries

NEWS = "application/x-ndjson"
#: A worker hears something at least so often, in s.
BEAT_S = 2.0


@dataclass(frozen=True)
class WorkerDoor:
    """``key``: who knows it may come in."""

    key: str
    workers: ApiWorkers
    queries: Queries


def open_door(app: FastAPI, door: WorkerDoor, access: Access) -> None:
    """Add what workers ask to an application."""

    guarded = [Depends(shows_key(door.key))]

    @app.post("/workers", dependencies=guarded, include_in_schema=False)
    async def connect(worker: Connecting) -> FeedResponse:
        if worker.version != version("skerry"):
            raise AccessError(
                409,
                f"the gateway is skerry {version('skerry')}, the worker {worker.version}: they must be the same",
            )
        return FeedResponse(_news(door.workers, worker, tokens=not access.open), NEWS)

    @app.post("/workers/{number}/readers", dependencies=guarded, include_in_schema=False)
    def read(number: int, reading: Reading) -> dict[str, Any]:
        caller, user = Caller(reading.user), reading.user
        query = door.queries.get(reading.query, user)
        access.check_feeds(caller, lambda: sum(own.readers for own in door.queries.all(user)))
        served = door.workers.serves(query)
        if served:
            access.take(caller)
            door.workers.read(number, query)
        return {"served": served}

    @app.post("/workers/{number}", dependencies=guarded, include_in_schema=False)
    def report(number: int, closed: Closed) -> dict[str, Any]:
        door.workers.report(number, closed.closed)
        return {}


async def _news(workers: ApiWorkers, described: Connecting, *, tokens: bool) -> AsyncGenerator[bytes, None]:
    loop, waiting = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any]]()

    def push(news: dict[str, Any]) -> None:
        # The server may have ended, which those who push must not mind.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(waiting.put_nowait, news)

    yield _line({"tokens": tokens})
    worker = await asyncio.to_thread(
        workers.open, described.name, described.host, described.pid, described.readers, push
    )
    try:
        spoken = time.monotonic()
        while await asyncio.to_thread(workers.look, worker):
            with suppress(TimeoutError):
                found = [await asyncio.wait_for(waiting.get(), 1.0)]
                while not waiting.empty():
                    found.append(waiting.get_nowait())
                yield b"".join(map(_line, found))
                spoken = time.monotonic()
            if time.monotonic() - spoken >= BEAT_S:
                yield b"\n"
                spoken = time.monotonic()
    finally:
        workers.close(worker)


def _line(news: dict[str, Any]) -> bytes:
    return json.dumps(news, separators=(",", ":")).encode() + b"\n"
