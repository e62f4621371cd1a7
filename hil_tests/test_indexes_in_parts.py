"""Indexes side by side on emulated motes of both boards, decomposed, joint and whole: each part of a tuple is stored by the motes that its
values say, once, and what is asked of all parts is what DuckDB says of what was sampled."""

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
        "humidity": Field(base=50.0, gradient=(0.4, -0.3), amplitude=20.0, period="270 s"),
    }
)
PERIOD_S, EPOCHS = 160, 3
LIGHT, TEMP, HUMIDITY = "light FROM 0 TO 1200", "temp FROM 10 TO 35", "humidity FROM 0 TO 100"
#: The same, stored in three ways.
FORMS = {
    "whole": f"JOINT ({LIGHT}, {TEMP}, {HUMIDITY})",
    "pair": f"JOINT ({LIGHT}, {TEMP}), {HUMIDITY}",
    "climate": f"{LIGHT}, {TEMP}, {HUMIDITY}",
}
#: Virtual s in which what was sampled has come to who stores it.
SETTLED_S = 400


def test_what_is_asked_of_indexes_in_parts_is_what_was_sampled(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int
) -> None:
    rng = random.Random(drawn_seed)
    net = network(grid(4, 3, spacing=10, boards=BOARDS), radio=disc(15), environment=FIELDS)
    office = Office(net, tmp_path, monkeypatch)
    office.advance(120, lambda: office.gateway.site.status()["motes"] == 12)
    columns = "nodeid, epoch, light, temp, humidity"
    sampled = office.ask(f"SELECT {columns} FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    parts = []
    for name, stored in FORMS.items():
        made = office.ask(f"CREATE INDEX {name} ON sensors ({stored}) SAMPLE PERIOD {PERIOD_S} s KEEP 1 day")
        assert made.index is not None
        parts.append(len(made.index.parts))
    assert parts == [1, 2, 3]
    office.advance((EPOCHS + 1) * PERIOD_S)
    epochs = [row["epoch"] for row in office.told(sampled)]
    # Each index begins with one of its first two.
    first, last = min(epochs) + 1, max(epochs)
    office.advance(SETTLED_S)
    database = duckdb.connect()
    values = [tuple(row.values()) for row in office.told(sampled) if first <= row["epoch"] <= last]
    for name in FORMS:
        database.execute(
            f"CREATE TABLE {name} (nodeid INTEGER, epoch INTEGER, light INTEGER, temp DOUBLE, humidity DOUBLE)"
        )
        database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", values)
    assert len(values) > 20
    texts = [f"{columns} FROM {name} WHERE epoch BETWEEN {first} AND {last}" for name in FORMS]
    texts += [drawn(rng, name, first, last, humidity=True) for _ in range(3) for name in FORMS]
    queries = [office.ask(f"SELECT {text}") for text in texts]
    office.answers(queries)
    for text, query in zip(texts, queries, strict=True):
        found = office.gateway.queries.indexed(query)
        assert found is not None
        assert found["complete"], text
        rows = [tuple(row.values()) for row in office.told(query)]
        assert plain(rows) == plain(database.execute(f"SELECT {text}").fetchall()), text
    for name in FORMS:
        office.gateway.queries.ask(f"DROP INDEX {name}", "ada")
        with pytest.raises(QueryError, match=name):
            office.ask(f"SELECT light FROM {name}")
    office.gateway.close()
