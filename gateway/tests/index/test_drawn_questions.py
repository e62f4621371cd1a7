"""Drawn questions over drawn tuples, as the gateway answers them once motes have sent these: DuckDB's answers."""

from __future__ import annotations

import random

from gateway.tests.index.drawn_questions import HUMIDITY, LIGHT, TEMP, Questions, database, told
from skerry.planner.features.indexing import Axis, Index, IndexPart
from skerry.sensors.index_tables import StoredTuple, answered, table_of
from skerry.sensors.planning import planned
from skerry_protocol.attributes import BY_NAME

#: Ranges of the attributes are narrower than what is drawn.
RANGES = {"light": (300, 900), "temp": (1000, 3500), "humidity": (2000, 7000)}
INDEX = Index(
    "climate",
    7,
    tuple(Axis(BY_NAME[name].number, *bounds) for name, bounds in RANGES.items()),
    40_000,
    86_400_000,
    (IndexPart((0, 1, 2), {1: (0, 0)}),),
)
EPOCHS, MOTES, QUESTIONS = range(700, 712), 6, 400


def drawn(rng: random.Random, bounds: tuple[int, int], scale: int) -> int | None:
    return None if rng.random() < 0.1 else rng.randrange(bounds[0] * scale, bounds[1] * scale)


def test_drawn_questions_over_drawn_tuples(drawn_seed: int) -> None:
    rng = random.Random(drawn_seed)
    tuples = [
        StoredTuple(node, 1, epoch, (drawn(rng, LIGHT, 1), drawn(rng, TEMP, 100), drawn(rng, HUMIDITY, 100)))
        for node in range(MOTES)
        for epoch in EPOCHS
    ]
    rows = [
        (one.node, one.epoch, one.values[0], *(None if v is None else v / 100 for v in one.values[1:]))
        for one in tuples
    ]
    base, questions, kinds = database(["climate"], rows), Questions(rng, EPOCHS, MOTES), set[str]()
    for _ in range(QUESTIONS):
        question = questions.draw("climate")
        plan = planned(question.ours, {"climate": table_of(INDEX)})
        assert plan is not None
        assert plan.sources is not None
        found = answered(plan.sources, INDEX, tuples, lambda _: None).to_pylist()
        asked = base.execute(question.theirs).fetchall()
        assert told(question, [tuple(row.values()) for row in found]) == told(question, asked), question
        kinds |= question.kinds
    assert len(kinds) > 18, kinds
