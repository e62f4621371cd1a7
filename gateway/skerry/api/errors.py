"""Errors as answers: JSON with ``message``, under the status that fits."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from skerry.access import AccessError
from skerry.catalog.places import PlaceError
from skerry.catalog.tags import TagError
from skerry.lang.errors import QueryError
from skerry.queries import UnknownEventError, UnknownQueryError
from skerry.state import StorageError


def answer_errors(app: FastAPI) -> None:
    """Teach an application to answer what the gateway raises."""

    @app.exception_handler(HTTPException)
    async def wrong(_: Request, error: HTTPException) -> JSONResponse:
        return _answer(error.status_code, error.detail, error.headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        said = (f"{'.'.join(map(str, entry['loc']))}: {entry['msg']}" for entry in error.errors())
        return _answer(422, "; ".join(said))

    @app.exception_handler(AccessError)
    async def denied(_: Request, error: AccessError) -> JSONResponse:
        return _answer(error.status, str(error), error.headers)

    @app.exception_handler(QueryError)
    async def refused(_: Request, error: QueryError) -> JSONResponse:
        return JSONResponse(error.to_dict(), status_code=400)

    @app.exception_handler(TagError)
    @app.exception_handler(PlaceError)
    async def impossible(_: Request, error: ValueError) -> JSONResponse:
        return _answer(400, str(error))

    @app.exception_handler(UnknownQueryError)
    @app.exception_handler(UnknownEventError)
    async def unknown(_: Request, error: KeyError) -> JSONResponse:
        return _answer(404, error.args[0])

    @app.exception_handler(StorageError)
    async def full(_: Request, error: StorageError) -> JSONResponse:
        return _answer(507, f"this could not be remembered: {error}")


def _answer(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"message": message}, status_code=status, headers=dict(headers) if headers else None)
