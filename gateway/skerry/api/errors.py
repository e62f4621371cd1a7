"""Errors as answers: JSON with ``message``, under the status that fits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Route

from skerry.api.access import AccessError
from skerry.catalog.substitutes import PlaceError
from skerry.catalog.tags import TagError
from skerry.service.api_workers import UnknownWorkerError
from skerry.service.queries import UnknownEventError, UnknownQueryError
from skerry.service.users import UserError
from skerry.sql.errors import QueryError
from skerry.sql.surrogates import escaped
from skerry.storage.state import StorageError

#: For the API's own description.
ERRORS: dict[int | str, dict[str, Any]] = {"4XX": {"description": "JSON with `message`"}}


class _Answer(JSONResponse):
    """JSON, of whatever text: a message may quote what was wrong with it."""

    def render(self, content: Any) -> bytes:
        return escaped(json.dumps(content, ensure_ascii=False, separators=(",", ":"))).encode()


def answer_errors(app: FastAPI) -> None:
    """Teach an application to answer what the gateway raises."""

    @app.exception_handler(405)
    async def no_method(request: Request, _: HTTPException) -> JSONResponse:
        # Of several routes with one path, the router names the first one's only.
        path = request.url.path
        fitting = [r for r in app.routes if isinstance(r, Route) and r.path_regex.match(path)]
        allowed = ", ".join(sorted({method for route in fitting for method in route.methods or ()}))
        return _answer(405, f"{request.method} {path}: there is {allowed}", {"Allow": allowed})

    @app.exception_handler(HTTPException)
    async def wrong(request: Request, error: HTTPException) -> JSONResponse:
        # The router names neither.
        nowhere = error.status_code == 404 and error.detail == "Not Found"
        said = f"{request.method} {request.url.path}: there is nothing there" if nowhere else error.detail
        return _answer(error.status_code, said, error.headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        sent = request.headers.get("Content-Type")
        if any(entry["loc"] == ("body",) for entry in error.errors()) and not _is_json(sent):
            # It is not read all the same: pages of others can send any other kind from a browser unasked.
            said = f"Content-Type {sent}" if sent else "no Content-Type"
            return _answer(415, f"{said}: send the body as JSON, with Content-Type: application/json")
        return _answer(400, "; ".join(map(_wrong, error.errors())))

    @app.exception_handler(AccessError)
    async def denied(_: Request, error: AccessError) -> JSONResponse:
        return _answer(error.status, str(error), error.headers)

    @app.exception_handler(QueryError)
    async def refused(_: Request, error: QueryError) -> JSONResponse:
        return _Answer(error.to_dict(), status_code=400)

    @app.exception_handler(TagError)
    @app.exception_handler(PlaceError)
    async def impossible(_: Request, error: ValueError) -> JSONResponse:
        return _answer(400, str(error))

    @app.exception_handler(UserError)
    async def no_user(_: Request, error: UserError) -> JSONResponse:
        return _answer(404 if error.missing else 400, str(error))

    @app.exception_handler(UnknownQueryError)
    @app.exception_handler(UnknownEventError)
    async def unknown(_: Request, error: KeyError) -> JSONResponse:
        return _answer(404, error.args[0])

    @app.exception_handler(UnknownWorkerError)
    async def unconnected(_: Request, error: UnknownWorkerError) -> JSONResponse:
        return _answer(410, str(error))

    @app.exception_handler(StorageError)
    async def full(_: Request, error: StorageError) -> JSONResponse:
        return _answer(507, f"this could not be remembered: {error}")


def _wrong(entry: Any) -> str:
    """One thing that is wrong with a request, by its place in it."""
    match entry["type"]:
        case "json_invalid":
            return f"the body is no JSON: {entry['ctx']['error']} at character {entry['loc'][-1]}"
        case "extra_forbidden":
            return f"{'.'.join(map(str, entry['loc']))}: there is no such field"
    return f"{'.'.join(map(str, entry['loc']))}: {entry['msg']}"


def _answer(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return _Answer({"message": message}, status_code=status, headers=dict(headers) if headers else None)


def _is_json(content_type: str | None) -> bool:
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
