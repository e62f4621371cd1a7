"""Windows over sources in a gateway that is killed at drawn points: each reader gets what he got of the one that went on."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from skerry.delivery import window_snapshots
from skerry.delivery.engine import Engine
from skerry.delivery.window_snapshots import WindowSnapshots
from skerry.execution import source_folding
from skerry.service.gateway import Gateway
from skerry.service.queries import UserQuery
from skerry.storage.log import stream_log
from skerry.storage.log.record import Block
from skerry.storage.log.source_times import SourceTimes
from skerry.windows import source_windows

Rows = list[tuple[int, dict[str, Any]]]


class Killed:
    """A gateway's log and its queries once more, from the first record on. ``data``: an empty directory for what is kept."""

    def __init__(
        self, gateway: Gateway, queries: Sequence[UserQuery], data: Path, chance: random.Random
    ) -> None:
        self._path, self._rows, self._queries, self._chance = (
            gateway.log.path,
            gateway.log.rows,
            queries,
            chance,
        )
        self._data = data
        ends = {
            query.id: SourceTimes(self._path).end_of(
                query.plan.sources.stream, int(query.id), query.position, self._rows
            )
            for query in queries
            if query.plan.sources is not None and query.plan.sources.stream is not None
        }
        self._ends = {query: end for query, end in ends.items() if end is not None}
        self._positions = {query.id: query.position - 1 for query in queries}
        self.got: dict[str, Rows] = {query.id: [] for query in queries}
        #: By start, how many records were folded again before the first batch.
        self.again: list[int] = []

    def _block(self, first: int, end: int) -> Block:
        return Block(*stream_log.read_there(self._path, first, end))

    def play(self, kills: Sequence[int]) -> None:
        """All records, some at a time; before these the gateway is killed, and some that went through come again."""
        at = 0
        for end in (*kills, self._rows):
            snapshots = WindowSnapshots(self._data)
            engine = self._started(snapshots, at)
            first = max(0, at - self._chance.choice([0, 0, 1, 3]))
            while at < end:
                upto = min(at + self._chance.randint(1, 4), end)
                for query, number in self._ends.items():
                    if at <= number < upto:
                        engine.end_sources(query, number)
                engine.process(self._block(first, upto))
                first = at = upto
                snapshots.wait()
                for query in self._chance.sample(self._queries, len(self._queries) // 2):
                    self._read(engine, query.id, at)
        for query in self._queries:
            self._read(engine, query.id, at)

    def _started(self, snapshots: WindowSnapshots, rows: int) -> Engine:
        engine = Engine(lambda _: None, self._block, log=self._path, snapshots=snapshots)
        for query in self._queries:
            engine.subscribe(query.id, query.plan, query.position)
            if self._ends.get(query.id, rows) < rows:
                engine.end_sources(query.id, self._ends[query.id])
        engine.resume(rows)
        engine.catch_up(rows)
        return engine

    def _read(self, engine: Engine, query: str, end: int) -> None:
        subscriber = engine.subscriber(query)
        assert subscriber is not None
        position = self._positions[query]
        while position < end - 1:
            found = subscriber.buffer.deliveries(position, through=end)
            if found is None:
                found = engine.replay_arrow(query, self._block(position + 1, end), position), end - 1
            parts, position = found
            self.got[query] += [row for part in parts for row in part.values()]
        self._positions[query] = position


def check_killed(
    gateway: Gateway, queries: Sequence[UserQuery], data: Path, chance: random.Random, kills: int
) -> None:
    """They are kept behind each batch, and nothing that is in a file is folded again."""
    folded = 0
    fold = source_folding.folded_rows

    def counted(*arguments: Any) -> Any:
        nonlocal folded
        folded += 1
        return fold(*arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: None)
        patched.setattr(window_snapshots, "AGAIN_MAXIMUM", 1)
        patched.setattr(window_snapshots, "LEAST_S", 0.0)
        patched.setattr(window_snapshots, "TIMES_AS_LONG", 0)
        patched.setattr(window_snapshots, "BYTES_PER_S", 1 << 40)
        patched.setattr(source_windows, "folded_rows", counted)
        killed = Killed(gateway, queries, data, chance)
        killed.play(sorted(chance.sample(range(1, gateway.log.rows), kills)))
        for query in queries:
            expected = gateway.delivery.engine.replay(
                query.id, Block(*stream_log.read_there(gateway.log.path, 0, gateway.log.rows)), -1
            )
            assert killed.got[query.id] == expected, query.sql
        folded = 0
        rows = gateway.log.rows
        killed._started(WindowSnapshots(data), rows).process(killed._block(rows - 1, rows))
        assert folded == 0
