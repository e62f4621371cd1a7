"""What the HTTP API needs of a gateway: three protocols, which :mod:`skerry.service` fulfils."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from skerry.catalog.substitutes import Substitute, Wanted
from skerry.sensors.store import Done
from skerry.service.api_workers import ApiWorker
from skerry.service.queries import Ended, UserQuery
from skerry.service.query_service import Stopped
from skerry.service.reader import Reader


class Described(Protocol):
    """What tells how it is, for JSON."""

    def to_dict(self) -> dict[str, Any]: ...


class Queries(Protocol):
    """:class:`skerry.service.query_service.QueryService`."""

    def ask(
        self, sql: str, user: str, check: Callable[[int], object], linger_s: float | None
    ) -> UserQuery | Stopped | Done: ...

    def stop(self, query_id: str, user: str | None) -> UserQuery: ...

    def get(self, query_id: str, user: str | None) -> UserQuery: ...

    def all(self, user: str | None) -> list[UserQuery]: ...

    def ended(self, user: str | None) -> list[Ended]: ...

    def begins(self, query: UserQuery) -> float | None: ...

    def answered(self, query: UserQuery) -> tuple[int, int | None]: ...

    def refused(self, query: UserQuery) -> list[str]: ...

    def indexed(self, query: UserQuery) -> dict[str, Any] | None: ...

    def explain(self, sql: str) -> dict[str, Any]: ...

    def points(self, user: str | None) -> list[dict[str, Any]]: ...

    def signal(self, event: str, user: str | None) -> list[str]: ...

    def run(
        self, command: str, argument: int | None, mote: int | None, position: tuple[float, float] | None
    ) -> Described: ...

    def command(self, token: int) -> Described | None: ...

    def ping(
        self, mote: int, to: int | None, within_s: int, place: tuple[float, float] | None, by: Sequence[int]
    ) -> Described: ...

    def pinged(self, token: int) -> Described | None: ...


class Feeds(Protocol):
    """:class:`skerry.service.delivery_service.DeliveryService`."""

    @property
    def rows(self) -> int: ...

    def reader(self, query: UserQuery, position: int | None) -> Reader: ...

    def reading(self, query: UserQuery, wake: Callable[[], None]) -> AbstractContextManager[None]: ...

    def caught_up(self, query: UserQuery) -> bool: ...

    def paused(self, query: UserQuery) -> str | None: ...


class ApiWorkers(Protocol):
    """Processes that serve readers: :class:`skerry.service.api_workers.ApiWorkers`."""

    def open(
        self,
        name: str,
        host: str,
        pid: int,
        readers: Mapping[str, int],
        push: Callable[[dict[str, Any]], object],
    ) -> ApiWorker: ...

    def close(self, worker: ApiWorker) -> None: ...

    def look(self, worker: ApiWorker) -> bool: ...

    def serves(self, query: UserQuery) -> bool: ...

    def read(self, number: int, query: UserQuery) -> None: ...

    def report(self, number: int, closed: list[str]) -> None: ...


class Site(Protocol):
    """What there is, and how it is: :class:`skerry.service.site.Site`."""

    def attributes(self) -> list[dict[str, Any]]: ...

    def motes(self, wanted: Wanted) -> list[dict[str, Any]]: ...

    def substitutes(self, mote: int, has: Sequence[str], count: int | None) -> list[Substitute]: ...

    def tag(self, nodeid: int, changes: dict[str, str | None], user: str) -> dict[str, str]: ...

    def select(self, sql: str, user: str | None) -> tuple[list[str], list[list[Any]]]: ...

    def tables(self) -> list[dict[str, Any]]: ...

    def status(self) -> dict[str, Any]: ...

    def compact(self) -> dict[str, Any]: ...
