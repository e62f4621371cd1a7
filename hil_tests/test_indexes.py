"""Indexes on emulated motes of both boards, by a whole gateway: tuples are stored by the motes that their values say, once, and what is
asked of them is what DuckDB says of what was sampled."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

from hil_tests.drawn_boxes import drawn, plain
from hil_tests.office import Office
from skerry.sql.errors import QueryError
from skerry_testbed.network import Environment, Field
from skerry_testbed.pytest import MakeNetwork, disc, grid

BOARDS = ("iris", "cc2538", "iris")
FIELDS = Environment(
    fields={
        "light": Field(base=500.0, gradient=(12.0, 3.0), amplitude=300.0, period="230 s"),
        "temp": Field(base=20.0, gradient=(0.1, 0.2), amplitude=5.0, period="310 s"),
    }
)
PERIOD_S = 40
CREATE = f"CREATE INDEX climate ON sensors (JOINT (light FROM 0 TO 1200, temp FROM 10 TO 35)) SAMPLE PERIOD {PERIOD_S} s KEEP 1 day"
#: Virtual s in which what was sampled has come to who stores it.
SETTLED_S = 240


def test_what_is_asked_of_an_index_is_what_was_sampled(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int
) -> None:
    rng = random.Random(drawn_seed)
    net = network(grid(4, 3, spacing=10, boards=BOARDS), radio=disc(15), environment=FIELDS)
    office = Office(net, tmp_path, monkeypatch)
    office.advance(120, lambda: office.gateway.site.status()["motes"] == 12)
    sampled = office.ask(f"SELECT nodeid, epoch, light, temp FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    office.ask(CREATE)
    office.advance(5 * PERIOD_S)
    epochs = [row["epoch"] for row in office.told(sampled)]
    # The index begins with one of its first two.
    first, last = min(epochs) + 1, max(epochs)
    office.advance(SETTLED_S)
    database = duckdb.connect()
    database.execute("CREATE TABLE climate (nodeid INTEGER, epoch INTEGER, light INTEGER, temp DOUBLE)")
    values = [tuple(row.values()) for row in office.told(sampled) if first <= row["epoch"] <= last]
    database.executemany("INSERT INTO climate VALUES (?, ?, ?, ?)", values)
    assert len(values) > 30
    whole = office.ask(f"SELECT nodeid, epoch FROM climate WHERE epoch BETWEEN {first} AND {last}")
    office.answers([whole])
    stored = [tuple(row.values()) for row in office.told(whole)]
    assert sorted(stored) == sorted((node, epoch) for node, epoch, *_ in values)
    asked = [drawn(rng, "climate", first, last) for _ in range(12)]
    queries = [office.ask(f"SELECT {text}") for text in asked]
    office.answers(queries)
    for text, query in zip(asked, queries, strict=True):
        found = office.gateway.queries.indexed(query)
        assert found is not None
        assert found["complete"], text
        rows = [tuple(row.values()) for row in office.told(query)]
        assert plain(rows) == plain(database.execute(f"SELECT {text}").fetchall()), text
    office.gateway.queries.ask("DROP INDEX climate", "ada")
    with pytest.raises(QueryError, match="climate"):
        office.ask("SELECT light FROM climate")
    office.gateway.close()
