"""Users joined with tables that change: executors find the pairs, and each gets what DuckDB answers him alone."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.tests.delivery.test_batches import drawn_log
from gateway.tests.executors import Executors
from gateway.tests.logs import PERIODS, STREAMS, Log, plan_of, seen
from skerry.delivery.engine import Engine
from skerry.planner.model.plans import Feed
from skerry.tables import store as store_module
from skerry.tables.columns import TableError
from skerry.tables.join import Joiner
from skerry.tables.journal import TableJournal
from skerry.tables.pairs import Pairing
from skerry.tables.store import TableStore

SELECTIONS = (
    ("s.nodeid, s.temp, p.name", "places p", "p.node = s.nodeid"),
    ("s.nodeid, p.height, p.name = 'hall' AS hall", "places p", "p.node = s.nodeid AND s.temp > 22"),
    ("s.temp - p.height AS d, p.node", "places p", "p.node = s.nodeid AND p.height > 3"),
    ("s.nodeid, p.name, r.area", "places p, rooms r", "p.node = s.nodeid AND r.name = p.name"),
    (
        "s.nodeid, r.area",
        "places p, rooms r",
        "p.node = s.nodeid AND r.name = p.name AND r.area + s.temp > 30",
    ),
    ("s.nodeid, p.name", "places p", "p.node = s.nodeid AND p.name = 'den' AND s.nodeid IN (1, 2, 3)"),
)
ROOMS = ("hall", "den", "attic", "lab")


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "LOOK_S", -1.0)


class User:
    """One, with a reader who remembers his position."""

    def __init__(self, name: str, place: int, *, period_ms: int) -> None:
        self.name, self.period_ms = name, period_ms
        self.columns, self.tables, self.where = SELECTIONS[place]
        self.position, self.got = -1, list[tuple[object, ...]]()

    def join(self, engine: Engine, store: TableStore, journal: TableJournal) -> None:
        sql = f"SELECT {self.columns} FROM sensors s, {self.tables} WHERE {self.where} SAMPLE PERIOD {self.period_ms} ms"
        plan = plan_of(sql, store.schemas())
        joiner = Joiner(plan, store.get, None, journal)
        journal.want(joiner.names)
        engine.subscribe(self.name, plan, 0, joiner)
        engine.set_feeds(self.name, {1: Feed(self.name, 1, self.period_ms, PERIODS[1], 0)})

    def read(self, engine: Engine, log: Log, through: int) -> None:
        subscriber = engine.subscriber(self.name)
        assert subscriber is not None
        try:
            found = subscriber.buffer.deliveries(self.position, through=through)
            if found is not None:
                parts, self.position = found
            else:
                parts = engine.replay_arrow(self.name, log.block(self.position + 1, through), self.position)
                self.position = max(self.position, through - 1)
        except TableError:
            return
        for part in parts:
            rows = zip(part.numbers.tolist(), part.columns.to_pylist(), strict=True)
            self.got += [(number, *values.values()) for number, values in rows]

    def in_duckdb(self, log: Log, held: dict[str, list[tuple[int, pa.Table]]], count: int) -> Iterator[Any]:
        records = log.records[:count]
        names = [column.name for column in STREAMS[1].mote_query.columns]
        sensors = pa.table(
            {
                "row": range(count),
                "nodeid": records["node"].astype(int),
                "temp": records["value"][:, names.index("temp")],
                "first": records["epoch"] * PERIODS[1] % self.period_ms == 0,
                "stream": records["stream"],
            }
        )
        bounds = sorted({at for versions in held.values() for at, _ in versions} | {0, count})
        for begin, end in itertools.pairwise(bounds):
            with duckdb.connect() as connection:
                connection.register("raw", sensors)
                connection.execute(
                    "CREATE VIEW sensors AS SELECT row, nodeid, (temp / 100)::DECIMAL(9, 2) AS temp FROM raw WHERE stream = 1 AND first"
                )
                for name, versions in held.items():
                    connection.register(f"{name}_read", [table for at, table in versions if at <= begin][-1])
                    exact = "REPLACE (height::DECIMAL(9, 2) AS height)" if name == "places" else ""
                    connection.execute(f"CREATE VIEW {name} AS SELECT * {exact} FROM {name}_read")
                yield from connection.execute(
                    f"SELECT row, {self.columns} FROM sensors s, {self.tables} "
                    f"WHERE {self.where} AND row >= {begin} AND row < {end}"
                ).fetchall()


def places(draw: np.random.Generator) -> pa.Table:
    count = int(draw.integers(1, 12))
    return pa.table(
        {
            "node": draw.integers(0, 9, count),
            "name": [ROOMS[n] for n in draw.integers(0, len(ROOMS), count)],
            "height": pa.array(draw.integers(0, 40, count) / 4, mask=draw.random(count) < 0.2),
        }
    )


def rooms(draw: np.random.Generator) -> pa.Table:
    count = int(draw.integers(1, 6))
    return pa.table(
        {"name": [ROOMS[n] for n in draw.integers(0, len(ROOMS), count)], "area": draw.integers(1, 30, count)}
    )


def plain(rows: Any) -> list[str]:
    return sorted(
        repr([seen(value) if not isinstance(value, float) else value for value in row]) for row in rows
    )


@pytest.mark.parametrize("seed", range(4))
def test_each_joined_user_gets_what_duckdb_answers_him_alone(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    draw = np.random.default_rng(seed)
    log, directory, rows = drawn_log(draw), tmp_path / "tables", 0
    directory.mkdir()
    make = {"places": places, "rooms": rooms}

    def put(name: str) -> pa.Table:
        table = make[name](draw)
        pq.write_table(table, directory / f"{name}.new")
        (directory / f"{name}.new").rename(directory / f"{name}.parquet")
        return table

    held = {name: [(0, put(name))] for name in make}
    store = TableStore(directory)
    journal = TableJournal(tmp_path, store, lambda: rows, threading.RLock())
    executors = Executors(tmp_path)
    engine = executors.engine(log.block)
    users = [
        User(str(i), int(draw.integers(len(SELECTIONS))), period_ms=int(draw.choice([5000, 10_000])))
        for i in range(8)
    ]
    for user in users:
        user.join(engine, store, journal)
    missing: dict[str, int] = {}
    found_here = 0
    found = Pairing.found

    def counted(self: Pairing, *arguments: Any) -> Any:
        nonlocal found_here
        found_here += 1
        return found(self, *arguments)

    while rows < len(log.records):
        begin, rows = rows, min(rows + int(draw.integers(1, 400)), len(log.records))
        with patch.object(Pairing, "found", counted):
            executors.process(engine, log.block(begin, rows))
        for user in users:
            if draw.random() < 0.3:
                user.read(engine, log, rows)
        name, what = str(draw.choice(list(make))), draw.integers(0, 6)
        if what == 0 and name not in missing:
            (directory / f"{name}.parquet").unlink()
            journal.look()
            missing[name] = rows
        elif what <= 2 or (name in missing and what == 3):
            # Rows of the time without it meet the one that comes.
            held[name].append((missing.pop(name, rows), put(name)))
            journal.look()
    for name, since in missing.items():
        held[name].append((since, put(name)))
        journal.look()
    for user in users:
        user.read(engine, log, rows)
        assert plain(user.got) == plain(user.in_duckdb(log, held, rows)), user.name
    assert found_here, "executors have found pairs"
    assert any(user.got for user in users)
