"""Drawn questions over drawn tuples, as the gateway answers them once motes have sent these: DuckDB's answers."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import pytest

from gateway.tests.index.drawn_questions import HUMIDITY, LIGHT, TEMP, Questions, database, told
from skerry.index.code import NULL
from skerry.index.questions import point
from skerry.planner.features.indexing import Axis, Index, IndexPart
from skerry.sensors.index_states import answered_by_states, states_of
from skerry.sensors.index_tables import StoredTuple, answered, table_of
from skerry.sensors.planning import planned
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import Aggregate

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


def drawn_tuples(rng: random.Random) -> list[StoredTuple]:
    """One of each mote in each epoch."""
    return [
        StoredTuple(node, 1, epoch, (drawn(rng, LIGHT, 1), drawn(rng, TEMP, 100), drawn(rng, HUMIDITY, 100)))
        for node in range(MOTES)
        for epoch in EPOCHS
    ]


def test_drawn_questions_over_drawn_tuples(drawn_seed: int) -> None:
    rng = random.Random(drawn_seed)
    tuples = drawn_tuples(rng)
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


def states_told(arguments: bytes, tuples: list[StoredTuple]) -> bytes:
    """What a mote that has these tuples answers, by the letter of the protocol."""
    which, part, limited = struct.unpack("<HBB", arguments[:4])
    assert (which, part & 15, INDEX.parts[0].columns) == (INDEX.number | 7 << 13, 0, (0, 1, 2))
    kinds, rest = arguments[4 : 4 + (part >> 4)], arguments[4 + (part >> 4) :]
    box = {}
    for place in range(3):
        if limited >> place & 1:
            box[place], rest = struct.unpack("<HH", rest[:4]), rest[4:]
    first, more = struct.unpack("<IH", rest) if rest else (0, 0xFFFF)
    there = [
        one
        for one in tuples
        if one.epoch >= first
        and (more == 0xFFFF or one.epoch - first <= more)
        and all(low <= placed(place, one.values[place]) <= high for place, (low, high) in box.items())
    ]
    told = b""
    for kind in kinds:
        known = [1 if kind & 15 == 15 else one.values[kind & 15] for one in there]
        values = [value for value in known if value is not None]
        merge = {Aggregate.MIN: min, Aggregate.MAX: max, Aggregate.COUNT: lambda _: 0}.get(kind >> 4, sum)
        told += struct.pack("<qI", merge(values) if values else 0, len(values))
    return told


def placed(place: int, value: int | None) -> int:
    return NULL if value is None else point(INDEX.axes[place].low, INDEX.axes[place].high, value)


def test_states_are_asked_for_where_they_say_all(drawn_seed: int) -> None:
    """Three motes have the tuples, and each tells its states."""
    rng = random.Random(drawn_seed)
    tuples = drawn_tuples(rng)
    motes = [[one for one in tuples if one.node % 3 == mote] for mote in range(3)]
    rows = [
        (one.node, one.epoch, one.values[0], *(None if v is None else v / 100 for v in one.values[1:]))
        for one in tuples
    ]
    base, by_states = database(["climate"], rows), 0
    for _ in range(QUESTIONS):
        text = drawn_aggregates(rng)
        plan = planned(text, {"climate": table_of(INDEX)})
        assert plan is not None
        assert plan.sources is not None
        asked = states_of(plan.sources, INDEX)
        if asked is None:
            continue
        by_states += 1
        read = [asked.read(states_told(asked.arguments(INDEX), mote)) for mote in motes]
        merged = asked.merged([states for states in read if states is not None])
        [found] = answered_by_states(plan.sources, INDEX, merged).to_pylist()
        theirs = base.execute(text).fetchone()
        assert theirs is not None
        ours = [None if value is None else float(value) for value in found.values()]
        assert ours == pytest.approx([None if value is None else float(value) for value in theirs]), text
    print(f"{by_states} of {QUESTIONS} questions by states")
    assert by_states > QUESTIONS / 3


def drawn_aggregates(rng: random.Random) -> str:
    """One that may be answered by states, more often than not."""
    names = {"light": (LIGHT, 1), "temp": (TEMP, 100), "humidity": (HUMIDITY, 100)}
    what = [
        rng.choice(
            ("COUNT(*)", f"{rng.choice(('COUNT', 'SUM', 'AVG', 'MIN', 'MAX'))}({rng.choice(list(names))})")
        )
        for _ in range(rng.randrange(1, 4))
    ]
    conditions = []
    for name in rng.sample(list(names), rng.randrange(3)):
        ((least, most), scale) = names[name]
        value = rng.randrange(least * scale, most * scale) / scale
        conditions.append(
            f"{name} {rng.choice(('<', '<=', '>', '>=', '='))} {value if scale > 1 else int(value)}"
        )
    if rng.random() < 0.3:
        conditions.append(f"epoch BETWEEN {EPOCHS[2]} AND {EPOCHS[rng.randrange(2, 9)]}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(f'{one} AS a{i}' for i, one in enumerate(what))} FROM climate{where}"


@pytest.mark.parametrize(
    ("asked", "by_states"),
    [
        ("COUNT(*) FROM climate", True),
        ("COUNT(*), AVG(temp), MAX(light) FROM climate WHERE temp BETWEEN 20 AND 25 AND light > 400", True),
        ("SUM(temp) FROM climate WHERE temp > 22 AND light < 800 AND epoch > 700 HAVING COUNT(*) > 3", True),
        # A command has no room for that.
        (
            "SUM(temp), MIN(temp), MAX(temp) FROM climate WHERE temp > 22 AND light < 800 AND epoch > 700",
            False,
        ),
        # What is beyond the range is stored with its edge.
        ("COUNT(*) FROM climate WHERE temp <= 35", False),
        ("COUNT(*) FROM climate WHERE temp < 35", True),
        ("COUNT(*) FROM climate WHERE temp >= 10", False),
        ("COUNT(*) FROM climate WHERE temp > 40", False),
        ("COUNT(*) FROM climate WHERE temp > 20 OR light > 500", False),
        ("COUNT(*) FROM climate WHERE nodeid = 3", False),
        ("MEDIAN(temp) FROM climate", False),
        ("COUNT(DISTINCT temp) FROM climate", False),
        ("AVG(temp + 1) FROM climate", False),
        ("nodeid, COUNT(*) FROM climate GROUP BY nodeid", False),
        ("MIN(temp), MAX(temp), MIN(light), MAX(light) FROM climate", False),
        ("AVG(temp), SUM(temp), COUNT(temp), COUNT(*) FROM climate", True),
    ],
)
def test_where_states_do_not_say_all_tuples_are_asked_for(asked: str, by_states: bool) -> None:
    plan = planned(f"SELECT {asked}", {"climate": table_of(INDEX)})
    assert plan is not None
    assert plan.sources is not None
    assert (states_of(plan.sources, INDEX) is not None) == by_states
    [part] = INDEX.parts
    changed = replace(INDEX, parts=(replace(part, added={3: (10, 10)}),))
    assert states_of(plan.sources, changed) is None
