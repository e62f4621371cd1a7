"""The HTTP API: queries, their rows as server-sent events, motes, catalog, status."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request

from skerry.api.access import Access, Caller
from skerry.api.body import Command, Find, Ping, Question, Text
from skerry.api.body_limit import Bounded
from skerry.api.errors import ERRORS, answer_errors
from skerry.api.feeds import Bell, FeedResponse, answer
from skerry.api.operator import OperatorDoor, open_operator_door
from skerry.api.services import Feeds, Queries, Site
from skerry.api.worker_door import WorkerDoor, open_door
from skerry.catalog.substitutes import Wanted, place_of
from skerry.expressions.ranges import doubt
from skerry.sensors.store import Done
from skerry.service.queries import Ended, UserQuery
from skerry.service.query_service import Stopped


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


def _answer_motes(app: FastAPI, queries: Queries) -> None:
    """What motes have to do with each other, past the gateway."""

    @app.post("/pings", status_code=202)
    def ping(asked: Ping, _: Who) -> dict[str, Any]:
        return queries.ping(asked.mote, asked.to, asked.within_s, asked.place, asked.by).to_dict()

    @app.get("/pings/{token}")
    def pinged(token: int, _: Who) -> dict[str, Any]:
        found = queries.pinged(token)
        if found is None:
            raise HTTPException(404, f"no ping with token {token} was sent lately")
        return found.to_dict()

    @app.post("/searches", status_code=202)
    def search(asked: Find, _: Who) -> dict[str, Any]:
        return queries.search(asked.attribute, asked.low, asked.high, asked.mote).to_dict()

    @app.get("/searches/{token}")
    def searched(token: int, _: Who) -> dict[str, Any]:
        found = queries.searched(token)
        if found is None:
            raise HTTPException(404, f"no search with token {token} was asked for lately")
        return found.to_dict()


def create_app(
    queries: Queries,
    delivery: Feeds,
    site: Site,
    access: Access,
    door: WorkerDoor | None = None,
    operator: OperatorDoor | None = None,
) -> FastAPI:
    """The application over a gateway's services; ``door``: for processes that serve readers for it; ``operator``: for who runs it."""
    app = FastAPI(
        title="skerry", version="1", openapi_url="/openapi.json" if access.open else None, responses=ERRORS
    )
    app.state.access, app.state.bell = access, None
    answer_errors(app)
    if door is not None:
        open_door(app, door, access)
    if operator is not None:
        open_operator_door(app, operator, access)
    app.add_middleware(Bounded)
    _answer_motes(app, queries)

    @app.post("/queries", status_code=201)
    def ask(question: Question, caller: Who) -> dict[str, Any]:
        caller = access.named(caller, question.user)
        answer = queries.ask(
            question.sql, caller.name, partial(access.check_queries, caller), question.linger_s
        )
        if isinstance(answer, Stopped):
            return {"stopped": [query.id for query in answer.queries]}
        if isinstance(answer, Done):
            return {"done": answer.text, "columns": answer.columns, "rows": answer.rows}
        return _describe(queries, delivery, answer)

    @app.get("/queries")
    def list_queries(caller: Who) -> list[dict[str, Any]]:
        going = [_describe(queries, delivery, query) for query in queries.all(caller.user)]
        return [*map(_describe_ended, queries.ended(caller.user)), *going]

    @app.delete("/queries/{query}")
    def stop(query: str, caller: Who) -> dict[str, Any]:
        return _describe(queries, delivery, queries.stop(query, caller.user))

    @app.post("/events/{event}")
    def signal(event: str, caller: Who) -> dict[str, Any]:
        return {"event": event, "queries": queries.signal(event, caller.user)}

    @app.post("/commands/{command}", status_code=202)
    def run(command: str, how: Command, _: Who) -> dict[str, Any]:
        return queries.run(command, how.argument, how.mote, how.position).to_dict()

    @app.get("/commands/{token}")
    def answers(token: int, _: Who) -> dict[str, Any]:
        running = queries.command(token)
        if running is None:
            raise HTTPException(404, f"no command with token {token} was sent lately")
        return running.to_dict()

    @app.get("/queries/{query}/rows")
    async def rows(
        query: str,
        caller: Who,
        accept: Annotated[str | None, Header()] = None,
        last_event_id: Annotated[str | None, Header()] = None,
        authorization: Annotated[str | None, Header()] = None,
        after: str | None = None,
    ) -> FeedResponse:
        asked = queries.get(query, caller.user)
        access.check_feeds(caller, lambda: sum(own.readers for own in queries.all(caller.user)))
        refusal = partial(access.refusal, caller, authorization)
        if app.state.bell is None:
            app.state.bell = Bell()
        return answer(delivery, asked, accept, last_event_id or after, refusal, app.state.bell)

    @app.post("/history")
    def compact(_: Who) -> dict[str, Any]:
        return site.compact()

    @app.get("/motes")
    def motes(
        _: Who,
        x: float | None = None,
        y: float | None = None,
        within: float | None = None,
        has: Annotated[list[str] | None, Query()] = None,
        tag: Annotated[list[str] | None, Query()] = None,
    ) -> list[dict[str, Any]]:
        near = place_of(x, y)
        tags = dict(_assignment(text) for text in tag or ())
        return site.motes(Wanted(near, within, has or (), tags))

    @app.get("/motes/{mote}/substitutes")
    def substitutes(
        mote: int, _: Who, has: Annotated[list[str] | None, Query()] = None, count: int | None = None
    ) -> list[dict[str, Any]]:
        return [dataclasses.asdict(one) for one in site.substitutes(mote, has or (), count)]

    @app.put("/motes/{mote}/tags")
    def tag(mote: int, changes: dict[Text, Text | None], caller: Who) -> dict[str, str]:
        return site.tag(mote, changes, caller.name)

    @app.get("/catalog")
    def catalog(caller: Who, sql: str | None = None) -> Any:
        if sql is None:
            return site.attributes()
        columns, rows = site.select(sql, caller.user)
        return {"columns": columns, "rows": rows}

    @app.get("/points")
    def points(caller: Who) -> list[dict[str, Any]]:
        return queries.points(caller.user)

    @app.get("/tables")
    def tables(_: Who) -> list[dict[str, Any]]:
        return site.tables()

    @app.get("/status")
    def status(_: Who) -> dict[str, Any]:
        return site.status()

    @app.get("/explain")
    def explain(sql: str, _: Who) -> dict[str, Any]:
        return queries.explain(sql)

    return app


def _describe(queries: Queries, delivery: Feeds, query: UserQuery) -> dict[str, Any]:
    answered, motes = queries.answered(query)
    return {
        "id": query.id,
        "user": query.user,
        "sql": query.sql,
        "columns": [
            {"name": o.name, "unit": o.unit, "digits": o.digits, "type": o.type} for o in query.plan.shown
        ],
        "period_ms": query.plan.period_ms,
        "finished": query.finished,
        "linger_s": query.linger_s,
        "readers": query.readers,
        "into": query.plan.into,
        "srt": query.srt.name if query.srt is not None else None,
        "started_by": query.started_by,
        "doubt": doubt(query.plan.where),
        "notes": list(query.plan.notes),
        "begins": queries.begins(query),
        "waits_for": list(query.plan.awaited),
        "answered": answered,
        "motes": motes,
        "refused": queries.refused(query),
        "paused": delivery.paused(query),
        "index": query.index.name if query.index is not None else None,
        "indexed": queries.indexed(query),
    }


def _describe_ended(ended: Ended) -> dict[str, Any]:
    """The same of one that could not go on."""
    return {
        **dict.fromkeys(("linger_s", "into", "srt", "started_by", "doubt", "begins", "index", "indexed")),
        "id": ended.id,
        "user": ended.user,
        "sql": ended.sql,
        "columns": [],
        "notes": [],
        "period_ms": None,
        "finished": True,
        "readers": 0,
        "waits_for": [],
        "answered": 0,
        "motes": None,
        "refused": [],
        "paused": ended.why,
    }


def _assignment(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise HTTPException(400, f"tag {text!r}: expected key=value")
    return key, value
