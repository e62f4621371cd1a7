"""A gateway with one source, or some, and a query over them: without Spark, for tests of types of streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery

CREATE = "CREATE SENSORS weather (id INT, feed STREAM (rain DOUBLE, place TEXT FROM '$.at.place', moment TIMESTAMP TIME))"
#: The fewest fields.
SHORT = "CREATE SENSORS weather (id INT, feed STREAM (rain DOUBLE, place TEXT, moment TIMESTAMP TIME))"


@contextmanager
def one_source(
    peer: RootPeer, data: Path, address: str | Sequence[str], create: str = CREATE
) -> Iterator[tuple[Gateway, UserQuery]]:
    """A gateway with sources, and a query over all of them."""
    with opened(peer, data) as gateway:
        gateway.queries.ask(create, "ada")
        for number, one in enumerate([address] if isinstance(address, str) else address, 1):
            gateway.queries.ask(f"INSERT INTO weather VALUES ({number}, '{one}')", "ada")
        query = gateway.queries.ask("SELECT * FROM weather", "ada")
        assert isinstance(query, UserQuery)
        gateway.sources.start()
        yield gateway, query


@contextmanager
def again(peer: RootPeer, data: Path) -> Iterator[tuple[Gateway, UserQuery]]:
    """The same on what a gateway before has left."""
    with opened(peer, data) as gateway:
        [query] = gateway.queries.all()
        gateway.sources.start()
        yield gateway, query


def rows(gateway: Gateway, query: UserQuery) -> list[tuple[Any, ...]]:
    """All that a reader from the first row on gets."""
    gateway.delivery.deliver()
    reader, found, more = gateway.delivery.reader(query, None), list[tuple[Any, ...]](), True
    while more:
        portion = reader.read()
        found += [tuple(row.values()) for part in portion.deliveries for _, row in part.values()]
        more = portion.more
    return found


def come(gateway: Gateway, query: UserQuery, count: int) -> list[tuple[Any, ...]]:
    """So many rows, once they are there."""
    wait_for(lambda: len(rows(gateway, query)) >= count)
    return rows(gateway, query)


def state(gateway: Gateway, number: int = 0) -> dict[str, Any]:
    """How a source is."""
    found = gateway.sources.status()
    return found[number] if len(found) > number else {"state": "", "why": "", "rows": 0}
