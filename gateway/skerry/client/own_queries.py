"""Queries of this process, which end with it: those of a script that is over would keep motes awake."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from typing import Any, Protocol

import httpx

#: A gateway that does not answer is waited for so long, in s, at a process's end: then the query's own time runs out.
_PATIENCE_S = 2.0


class Asker(Protocol):
    """A client, as far as it is needed at the end."""

    http: httpx.Client


#: Clients with their queries' ids, and the process that has asked: one that was forked off has no queries yet.
_asked: dict[tuple[int, Any, str], None] = {}


def add(client: Asker, query: str) -> None:
    """A query that this process has asked."""
    _asked[os.getpid(), client, query] = None


def discard(client: Asker, query: str) -> None:
    """One that somebody has stopped."""
    _asked.pop((os.getpid(), client, query), None)


@atexit.register
def stop_all() -> None:
    """This process ends: what it has asked and is not over is stopped, the last first."""
    silent: set[Any] = set()
    for process, client, query in reversed(list(_asked)):
        if process != os.getpid() or client in silent:
            continue
        # Also of a client that was closed.
        with suppress(RuntimeError):
            try:
                client.http.delete(f"/queries/{query}", timeout=_PATIENCE_S)
            except httpx.HTTPError:
                silent.add(client)
    _asked.clear()
