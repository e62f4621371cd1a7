"""A whole gateway, without Spark, at emulated motes: both live in the motes' time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery
from skerry_testbed.pytest import NetworkHandle

#: Virtual s between two turns of the gateway.
TURN_S = 0.2


class Office:
    """A gateway at emulated motes, in their time."""

    def __init__(self, net: NetworkHandle, data: Path, machine: pytest.MonkeyPatch) -> None:
        self.net = net
        for name in ("time", "monotonic"):
            machine.setattr(f"time.{name}", lambda: 1_800_000_000 + net.now)
        machine.setattr("time.time_ns", lambda: round((1_800_000_000 + net.now) * 1e9))
        machine.setattr("time.clock_gettime", lambda _: net.now)
        self.gateway = Gateway(["emulated"], data)
        self.gateway.roots[0].link.attach(self._send)
        self._out, self._came = bytearray(), bytearray()
        net.bed.line_listeners[:] = [self._came.extend]

    def _send(self, data: bytes) -> None:
        self._out += data

    def turn(self) -> None:
        """Virtual time goes on a little."""
        self.net.advance(TURN_S)
        came, self._came[:] = bytes(self._came), b""
        self.gateway.links.take([came])
        self.gateway.delivery.deliver()
        if self._out:
            self.net.bed.send(bytes(self._out))
            self._out.clear()

    def advance(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Let it go on for so long, or until that is so."""
        end = self.net.now + seconds
        while self.net.now < end and not until():
            self.turn()

    def ask(self, sql: str) -> UserQuery:
        """A query."""
        asked = self.gateway.queries.ask(sql, "ada")
        assert isinstance(asked, UserQuery)
        return asked

    def told(self, query: UserQuery) -> list[dict[str, Any]]:
        """Its rows so far."""
        reader, found, more = self.gateway.delivery.reader(query, None), list[dict[str, Any]](), True
        while more:
            portion = reader.read()
            found += [row for delivery in portion.deliveries for _, row in delivery.values()]
            more = portion.more
        return found

    def answers(self, queries: list[UserQuery]) -> None:
        """Wait for the answers of queries of an index."""

        def is_over(query: UserQuery) -> bool:
            return bool((self.gateway.queries.indexed(query) or {})["over"])

        # What is over stays so: of hundreds one is looked at each turn.
        waiting = deque(queries)

        def over() -> bool:
            while waiting and is_over(waiting[0]):
                waiting.popleft()
            return not waiting

        self.advance(200 * len(queries), over)
        assert all(map(is_over, queries))
