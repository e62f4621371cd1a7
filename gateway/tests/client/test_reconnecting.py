"""The client's readers over connections that break: a server that says what a gateway, or a proxy before one, says."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

import skerry
from gateway.tests.logs import plan_of
from gateway.tests.process import SQL
from skerry.api.feeds import ARROW, SSE, ArrowWriter, EventWriter, Writer
from skerry.client import rows as rows_module
from skerry.execution.deliveries import Delivery
from skerry.execution.residual import Residual
from skerry.service.queries import UserQuery

QUERY = UserQuery("1", "ada", SQL, plan_of(SQL), 0.0, 0)
SCHEMA = Residual(QUERY.plan).schema()
DESCRIPTION = {"id": "1", "columns": [], "into": None, "srt": None}


@contextmanager
def served(answer: Callable[[Request], Response]) -> Iterator[str]:
    """The URL of a server that answers so to who asks for rows."""
    app = FastAPI()

    @app.get("/queries/1/rows", response_model=None)
    def rows(request: Request) -> Response:
        return answer(request)

    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    listening = socket.create_server(("127.0.0.1", 0), backlog=200)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


def writer_of(request: Request) -> Writer:
    return EventWriter() if request.headers["Accept"] == SSE else ArrowWriter(QUERY, SCHEMA)


def feed(request: Request, *parts: Callable[[Writer], bytes]) -> Response:
    """A feed that begins, says so much and ends, which is the end of the query if it says that."""
    writer = writer_of(request)

    async def content() -> AsyncIterator[bytes]:
        for part in [lambda writer: writer.begin(-1), *parts]:
            yield part(writer)

    return StreamingResponse(content(), media_type=writer.media_type)


def row(writer: Writer) -> bytes:
    columns = pa.RecordBatch.from_pylist([{"nodeid": 3, "temp": 21.5}], schema=SCHEMA)
    return writer.rows(Delivery(np.array([7]), columns))


async def asynchronously(rows: skerry.Rows) -> list[dict[str, object]]:
    return [row async for row in rows]


@pytest.mark.parametrize(
    "read", [list, lambda rows: asyncio.run(asynchronously(rows)), lambda rows: rows.to_arrow().to_pylist()]
)
def test_a_gateway_that_spoke_meanwhile_did_come_back(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[skerry.Rows], object]
) -> None:
    """Connections end now and then, as proxies have it, and rows of a query may be rare: days of that are no gateway that is away. Nor
    is one that a proxy cannot reach while it starts again."""
    monkeypatch.setattr(rows_module, "RECONNECTS", 2)
    answers: Iterator[Callable[[Request], Response]] = iter(
        [
            *[lambda request: feed(request, lambda writer: writer.mark(5))] * 3,
            lambda _: PlainTextResponse("Bad Gateway", 502),
            lambda request: feed(request, row, lambda writer: writer.end("finished")),
        ]
    )

    def answer(request: Request) -> Response:
        return next(answers)(request)

    with served(answer) as url:
        assert read(skerry.Rows(skerry.connect(url), DESCRIPTION)) == [{"nodeid": 3, "temp": 21.5}]


@pytest.mark.parametrize("read", [list, skerry.Rows.to_arrow])
def test_a_gateway_that_never_gets_farther_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[skerry.Rows], object]
) -> None:
    """A fault that ends each feed at its beginning."""
    monkeypatch.setattr(rows_module, "RECONNECTS", 1)
    with served(feed) as url, pytest.raises(skerry.GatewayError, match="does not come back"):
        read(skerry.Rows(skerry.connect(url), DESCRIPTION))


def test_who_waits_in_vain_for_rows_is_told_their_columns_once_the_gateway_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows_module.time, "sleep", lambda _: None)
    answers = iter([PlainTextResponse("the gateway is away", 503)] * 2)
    with served(lambda request: next(answers, None) or feed(request, lambda writer: writer.mark(7))) as url:
        reader = skerry.Rows(skerry.connect(url), DESCRIPTION)
        assert reader.to_arrow(rows=0).schema.names == SCHEMA.names


def test_one_client_may_read_as_many_feeds_as_the_gateway_lets_it() -> None:
    """Of a hundred and more queries at once, which had to wait for each other."""
    closing = asyncio.Event()

    def answer(request: Request) -> Response:
        async def content() -> AsyncIterator[bytes]:
            yield row(writer_of(request))
            await closing.wait()

        return StreamingResponse(content(), media_type=ARROW)

    with served(answer) as url:
        client = skerry.connect(url)
        feeds = [iter(skerry.Rows(client, DESCRIPTION)) for _ in range(120)]
        assert [next(rows)["temp"] for rows in feeds] == [21.5] * 120
        for rows in feeds:
            rows.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "read",
    [
        list,
        lambda rows: asyncio.run(asynchronously(rows)),
        lambda rows: rows.to_arrow().to_pylist(),
        lambda rows: rows.to_pandas().to_dict("records"),
    ],
    ids=["rows", "asynchronously", "arrow", "pandas"],
)
def test_moments_are_moments_whatever_way_they_are_read(
    read: Callable[[skerry.Rows], list[dict[str, object]]],
) -> None:
    moment = datetime(2026, 11, 27, 3, 35, 6, 250_000, UTC)
    sql = "SELECT nodeid, time FROM sensors SAMPLE PERIOD 1 s"
    query = UserQuery("1", "ada", sql, plan_of(sql), 0.0, 0)
    schema = Residual(query.plan).schema()
    columns = [{"name": output.name, "type": output.type} for output in query.plan.outputs]

    def answer(request: Request) -> Response:
        writer: Writer = EventWriter() if request.headers["Accept"] == SSE else ArrowWriter(query, schema)
        batch = pa.RecordBatch.from_pylist(
            [{"nodeid": 3, "time": moment}, {"nodeid": 4, "time": None}], schema=schema
        )

        async def content() -> AsyncIterator[bytes]:
            for part in (
                writer.begin(-1),
                writer.rows(Delivery(np.array([7, 8]), batch)),
                writer.end("finished"),
            ):
                yield part

        return StreamingResponse(content(), media_type=writer.media_type)

    with served(answer) as url:
        first, second = read(skerry.Rows(skerry.connect(url), {**DESCRIPTION, "columns": columns}))
    assert first == {"nodeid": 3, "time": moment}
    assert second["time"] is None or pd.isna(second["time"])
