"""The HTTP API: queries, their rows as server-sent events, motes, catalog, status."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sse_starlette import EventSourceResponse, ServerSentEvent

from skerry.access import Access, AccessError, Caller
from skerry.daemon import Gateway, Stopped
from skerry.lang.errors import QueryError
from skerry.queries import UnknownEventError, UnknownQueryError, UserQuery
from skerry.state import StorageError
from skerry.streams.log import RowsGoneError

#: How often a feed is looked at for new rows, in s.
POLL_S = 0.02
#: A comment goes out after so much silence, so that dead connections are noticed, in s.
PING_S = 15


class Command(BaseModel):
    """A command's argument, where it takes one, and the mote that runs it: none, all of them."""

    argument: int | None = None
    mote: int | None = None


class Question(BaseModel):
    """A query and who asks: here or as parameter ``user``."""

    sql: str
    user: str | None = None


def admit(
    request: Request,
    user: str | None = None,
    authorization: Annotated[str | None, Header()] = None,
    host: Annotated[str | None, Header()] = None,
) -> Caller:
    """Who does a request. Raises AccessError."""
    access: Access = request.app.state.access
    return access.admit(authorization, user, host)


Who = Annotated[Caller, Depends(admit)]


def create_app(gateway: Gateway, access: Access) -> FastAPI:
    """The application over one gateway."""
    app = FastAPI(title="skerry", version="1", openapi_url="/openapi.json" if access.open else None)
    app.state.access = access

    @app.exception_handler(AccessError)
    async def denied(_: Request, error: AccessError) -> JSONResponse:
        return JSONResponse({"message": str(error)}, status_code=error.status, headers=error.headers)

    @app.exception_handler(QueryError)
    async def refused(_: Request, error: QueryError) -> JSONResponse:
        return JSONResponse(error.to_dict(), status_code=400)

    @app.exception_handler(UnknownQueryError)
    @app.exception_handler(UnknownEventError)
    async def unknown(_: Request, error: KeyError) -> JSONResponse:
        return JSONResponse({"message": error.args[0]}, status_code=404)

    @app.exception_handler(StorageError)
    async def full(_: Request, error: StorageError) -> JSONResponse:
        return JSONResponse({"message": f"this could not be remembered: {error}"}, status_code=507)

    @app.exception_handler(RowsGoneError)
    async def gone(request: Request, error: RowsGoneError) -> JSONResponse:
        message = _gone(request.path_params["query"], error)
        return JSONResponse({"message": message, "first": error.first}, status_code=410)

    @app.post("/queries", status_code=201)
    def ask(question: Question, caller: Who) -> dict[str, Any]:
        caller = access.named(caller, question.user)
        answer = gateway.ask(question.sql, caller.name, partial(access.check_queries, caller))
        if isinstance(answer, Stopped):
            return {"stopped": [query.id for query in answer.queries]}
        return _describe(gateway, answer)

    @app.get("/queries")
    def queries(caller: Who) -> list[dict[str, Any]]:
        return [_describe(gateway, query) for query in gateway.queries(caller.user)]

    @app.delete("/queries/{query}")
    def stop(query: str, caller: Who) -> dict[str, Any]:
        return _describe(gateway, gateway.stop(query, caller.user))

    @app.post("/events/{event}")
    def signal(event: str, caller: Who) -> dict[str, Any]:
        return {"event": event, "queries": gateway.signal(event, caller.user)}

    @app.post("/commands/{command}", status_code=202)
    def run(command: str, how: Command, _: Who) -> dict[str, Any]:
        return gateway.run(command, how.argument, how.mote).to_dict()

    @app.get("/commands/{token}")
    def answers(token: int, _: Who) -> dict[str, Any]:
        running = gateway.command(token)
        if running is None:
            raise HTTPException(404, f"no command with token {token} was sent lately")
        return running.to_dict()

    @app.get("/queries/{query}/rows")
    async def rows(
        query: str, caller: Who, last_event_id: Annotated[str | None, Header()] = None
    ) -> EventSourceResponse:
        if last_event_id is not None and not last_event_id.isdigit():
            raise HTTPException(
                400, f"Last-Event-ID {last_event_id!r}: expected the id of an event of this query"
            )
        after = None if last_event_id is None else int(last_event_id)
        begin = gateway.begin(gateway.query(query, caller.user), after)
        return EventSourceResponse(_events(gateway, query, begin), ping=PING_S)

    @app.post("/history")
    def compact(_: Who) -> dict[str, Any]:
        try:
            rows = gateway.history.compact()
        except OSError as error:
            raise StorageError(str(error)) from None
        return {"compacted": rows, **gateway.history.status()}

    @app.get("/motes")
    def motes(_: Who) -> list[dict[str, Any]]:
        return gateway.catalog.motes()

    @app.get("/catalog")
    def catalog(_: Who) -> list[dict[str, Any]]:
        return gateway.catalog.attributes()

    @app.get("/points")
    def points(caller: Who) -> list[dict[str, Any]]:
        return gateway.points(caller.user)

    @app.get("/status")
    def status(_: Who) -> dict[str, Any]:
        return gateway.status()

    @app.get("/explain")
    def explain(sql: str, _: Who) -> dict[str, Any]:
        return gateway.explain(sql)

    return app


def _describe(gateway: Gateway, query: UserQuery) -> dict[str, Any]:
    return {
        "id": query.id,
        "user": query.user,
        "sql": query.sql,
        "columns": [
            {"name": o.name, "unit": o.unit, "digits": o.digits, "type": o.type} for o in query.plan.outputs
        ],
        "period_ms": query.plan.period_ms,
        "finished": query.finished,
        "into": query.plan.into,
        "started_by": query.started_by,
        "refused": gateway.refused(query),
    }


def _gone(query: str, error: RowsGoneError) -> str:
    return (
        f"query {query}: rows up to {error.first - 1} have left the log, which keeps them for a time (docs/history.md): go on behind "
        f"them with Last-Event-ID {error.first - 1}, and ask for older samples with HISTORY"
    )


async def _events(gateway: Gateway, query: str, position: int) -> AsyncIterator[ServerSentEvent]:
    """Rows behind a position, for ever; ``end`` when no more can come. The id of an event is its row's number in the log."""
    while True:
        try:
            asked = gateway.query(query)
            finished = asked.finished
            found, position, more = await asyncio.to_thread(gateway.rows_after, query, position)
        except UnknownQueryError:
            yield ServerSentEvent(event="end", data="stopped")
            return
        except RowsGoneError as error:
            yield ServerSentEvent(event="dropped", data=json.dumps({"message": _gone(query, error)}))
            position = error.first - 1
            continue
        for number, values in found:
            yield ServerSentEvent(id=str(number), event="row", data=json.dumps(values))
        if more or found:
            continue
        if finished and gateway.caught_up(asked):
            yield ServerSentEvent(event="end", data="finished")
            return
        await asyncio.sleep(POLL_S)
