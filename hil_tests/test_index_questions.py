"""Two hundred drawn questions to indexes on emulated motes, one of whole tuples and one in parts, by a whole gateway: over drawn tuples,
with NULLs and values beyond the ranges, and over readings of a redwood, the answers are DuckDB's."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gateway.tests.index.drawn_questions import (
    COLUMNS,
    HUMIDITY,
    LIGHT,
    TEMP,
    Questions,
    database,
    told,
)
from hil_tests.datasets import DATA
from hil_tests.office import Office
from skerry_testbed.pytest import MakeNetwork, disc, grid

#: All hear each other, so that a question takes as little time as it may.
BOARDS = ("iris", "cc2538", "cc2538", "iris", "iris", "cc2538")
PERIOD_S, EPOCHS = 160, 5
RANGES = "light FROM 300 TO 900, temp FROM 10 TO 35", "humidity FROM 20 TO 70"
#: How many questions each index is asked: one in parts takes a flood for each.
FORMS = {
    "whole": (f"JOINT ({RANGES[0]}, {RANGES[1]})", 140),
    "pair": (f"JOINT ({RANGES[0]}), {RANGES[1]}", 60),
}
#: Virtual s in which what was sampled has come to who stores it.
SETTLED_S = 400


def drawn(rng: random.Random, bounds: tuple[int, int]) -> float:
    """NaN: the sensor fails."""
    return math.nan if rng.random() < 0.1 else rng.randrange(bounds[0] * 100, bounds[1] * 100) / 100


REDWOOD = DATA / "redwood-log.parquet"
#: How many of a redwood's readings motes may sample, and how near to one a sensor comes: degC and %.
READINGS, NEAR = 200, (0.05, 0.2)
Values = dict[str, float]


def redwood(rng: random.Random) -> list[Values]:
    """Some readings of a redwood, its light cut off where no index has a range any more; none where they are not here."""
    if not REDWOOD.exists():
        print(f"skipped: {REDWOOD} is not here: all tuples are drawn ones")
        return []
    columns = {"par_top": "light", "temperature": "temp", "humidity": "humidity"}
    found = pd.read_parquet(REDWOOD, columns=list(columns)).dropna().rename(columns=columns)
    some = found.sample(READINGS, random_state=rng.randrange(1 << 31))
    some["light"] = some["light"].clip(upper=LIGHT[1])
    return [{str(name): float(value) for name, value in row.items()} for row in some.to_dict("records")]


def is_near(row: tuple[Any, ...], reading: Values) -> bool:
    """Whether a sampled tuple (mote, epoch, light, temp, humidity) is of this reading."""
    pairs = zip(row[3:], (reading["temp"], reading["humidity"]), NEAR, strict=True)
    return all(value is not None and abs(value - real) < near for value, real, near in pairs)


def test_two_hundred_drawn_questions(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn_seed: int
) -> None:
    rng = random.Random(drawn_seed)
    net = network(grid(3, 2, spacing=5, boards=BOARDS), radio=disc(15))
    office = Office(net, tmp_path, monkeypatch)
    office.advance(120, lambda: office.gateway.site.status()["motes"] == len(BOARDS))
    sampled = office.ask(f"SELECT {COLUMNS} FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    for name, (stored, _) in FORMS.items():
        office.ask(f"CREATE INDEX {name} ON sensors ({stored}) SAMPLE PERIOD {PERIOD_S} s KEEP 1 day")
    readings = redwood(rng)
    for _ in range(EPOCHS * 4):
        for mote in net.motes.values():
            if readings and rng.random() < 0.5:
                mote.sense(**rng.choice(readings))
            else:
                mote.sense(light=drawn(rng, LIGHT), temp=drawn(rng, TEMP), humidity=drawn(rng, HUMIDITY))
        office.advance(PERIOD_S / 4)
    epochs = [row["epoch"] for row in office.told(sampled)]
    # Each index begins with one of its first two.
    first, last = min(epochs) + 1, max(epochs)
    office.advance(SETTLED_S)
    rows = [tuple(row.values()) for row in office.told(sampled) if first <= row["epoch"] <= last]
    office.gateway.queries.ask(f"STOP QUERY {sampled.id}", "ada")
    real = sum(any(is_near(row, reading) for reading in readings) for row in rows)
    assert real > len(rows) / 5 or not readings
    base, kinds = database(FORMS, rows), set[str]()
    draws = Questions(rng, range(first, last + 1), len(BOARDS))
    questions = [draws.draw(name) for name, (_, count) in FORMS.items() for _ in range(count)]
    began = net.now
    queries = [office.ask(question.ours) for question in questions]
    office.answers(queries)
    for question, query in zip(questions, queries, strict=True):
        found = office.gateway.queries.indexed(query)
        assert found is not None
        assert found["complete"], question
        ours = [tuple(row.values()) for row in office.told(query)]
        assert told(question, ours) == told(question, base.execute(question.theirs).fetchall()), question
        kinds |= question.kinds
    print(
        f"{len(questions)} questions over {len(rows)} tuples, {real} of a redwood, in {net.now - began:.0f} virtual s, of {sorted(kinds)}"
    )
    assert len(questions) == 200
    assert len(kinds) > 18, kinds
    office.gateway.close()
