"""Drawn questions over drawn tuples, as the gateway answers them once motes have sent these: DuckDB's answers."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from typing import Any

import pytest

from gateway.tests.index.drawn_questions import HUMIDITY, LIGHT, TEMP, Questions, database, told
from skerry.index.code import NULL
from skerry.index.questions import point
from skerry.network.index_asks import IndexAsk, IndexAsks
from skerry.planner.features.indexing import Axis, Index, IndexPart
from skerry.sensors.index_state_prices import Load, price_of
from skerry.sensors.index_states import ONLY, StateQuestion, answered_by_states, states_of
from skerry.sensors.index_tables import StoredTuple, answered, table_of
from skerry.sensors.planning import planned
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import Aggregate
from skerry_protocol.records import States, Stored

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
#: The same, stored by four.
FOUR = replace(INDEX, parts=(IndexPart((0, 1, 2), {1: (0, 0), 2: (10, 0), 3: (0, 10), 4: (10, 10)}),))
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


def states_told(rng: random.Random, arguments: bytes, tuples: list[StoredTuple]) -> list[bytes]:
    """What a mote that has these tuples answers, by the protocol: of a group more than once, where some have gone before."""
    which, part, limited = struct.unpack("<HBB", arguments[:4])
    assert (which, part & 7, INDEX.parts[0].columns) == (INDEX.number | 7 << 13, 0, (0, 1, 2))
    grouped, rest = bool(part & 8), arguments[4:]
    by, rest = (rest[0], rest[1:]) if grouped else (None, rest)
    kinds, rest = rest[: part >> 4], rest[part >> 4 :]
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
    if by is None:
        return [
            bytes(kind >> 4 for kind in kinds)
            + b"".join(struct.pack("<qI", *state_of(kind, there)) for kind in kinds)
        ]
    records = []
    for some in (there[: (at := rng.randrange(len(there) + 1))], there[at:]):
        groups = dict[int | None, list[StoredTuple]]()
        for one in some:
            groups.setdefault({14: one.node, 13: one.epoch}.get(by, one.values[by % 3]), []).append(one)
        records.append(
            b"".join(
                struct.pack("<i", -(2**31) if key is None else key)
                + b"".join(struct.pack("<iH", *state_of(kind, of)) for kind in kinds)
                for key, of in groups.items()
            )
        )
    return records


def states_body(token: int, nodes: list[int], told: bytes) -> Any:
    """A STATES record of these motes."""
    more = told + b"".join(struct.pack("<H", node) for node in nodes)
    aggregates = len(told) // 13
    return States.parse(
        States.build({"token": token, "aggregates": aggregates, "motes": len(nodes), "more": more})
    )


def state_of(kind: int, tuples: list[StoredTuple]) -> tuple[int, int]:
    """Value and count."""
    known = [1 if kind & 15 == 15 else one.values[kind & 15] for one in tuples]
    values = [value for value in known if value is not None]
    merge = {Aggregate.MIN: min, Aggregate.MAX: max, Aggregate.COUNT: lambda _: 0}.get(kind >> 4, sum)
    return merge(values) if values else 0, len(values)


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
    base, by_states, by_group = database(["climate"], rows), 0, 0
    for _ in range(QUESTIONS):
        text = drawn_aggregates(rng)
        plan = planned(text, {"climate": table_of(INDEX)})
        assert plan is not None
        assert plan.sources is not None
        asked = states_of(plan.sources, INDEX)
        if asked is None:
            continue
        by_states += 1
        told = [states_told(rng, asked.arguments(INDEX), mote) for mote in motes]
        if asked.group is None:
            united = [asked.united(states_body(1, [i], *records)) for i, records in enumerate(told)]
            read = [[(ONLY, one[1])] for one in united if one is not None]
        else:
            read = [states for records in told if (states := asked.read(records)) is not None]
        assert len(read) == len(motes)
        merged = asked.merged(read)
        found = answered_by_states(plan.sources, INDEX, asked, merged).to_pylist()
        ours, theirs = (
            [[None if value is None else float(value) for value in row] for row in rows]
            for rows in ([list(row.values()) for row in found], base.execute(text).fetchall())
        )
        assert len(ours) == len(theirs), text
        for one, other in zip(ours, theirs, strict=True):
            assert one == pytest.approx(other), text
        by_group += asked.group is not None
    print(f"{by_states} of {QUESTIONS} questions by states, {by_group} of them by group")
    assert by_states > QUESTIONS / 3
    assert by_group > QUESTIONS / 8


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
    columns, behind = [f"{one} AS a{i}" for i, one in enumerate(what)], ""
    if rng.random() < 0.5:
        by = rng.choice(("nodeid", "epoch", *names))
        columns, behind = [by, *columns], f" GROUP BY {by}"
        if rng.random() < 0.3:
            # Of groups it is asked at the gateway.
            of = {"nodeid": (0, 6), "epoch": (700, 712)}.get(by) or names[by][0]
            conditions.append(rng.choice(("{0} % 2 = 0", "{0} >= {1}", "({0} = {1} OR {0} < {1})", "{0} IS NOT NULL")).format(
                by, rng.randrange(*of)
            ))  # fmt: skip
        if rng.random() < 0.3:
            behind += f" HAVING COUNT(*) > {rng.randrange(3)}"
        behind += f" ORDER BY {by}" + (f" LIMIT {rng.randrange(1, 9)}" if rng.random() < 0.3 else "")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(columns)} FROM climate{where}{behind}"


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
        ("nodeid, COUNT(*) FROM climate GROUP BY nodeid", True),
        ("light, AVG(temp) FROM climate WHERE light > 1000 AND temp < 30 GROUP BY light", True),
        ("nodeid FROM climate WHERE nodeid IN (3, 4) AND epoch > 700 GROUP BY nodeid", True),
        ("light, AVG(temp) FROM climate WHERE nodeid IN (3, 4) GROUP BY light", False),
        ("light + 1, COUNT(*) FROM climate GROUP BY light + 1", False),
        ("nodeid, epoch, COUNT(*) FROM climate GROUP BY nodeid, epoch", False),
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


def by_group(asked: str) -> StateQuestion:
    plan = planned(f"SELECT {asked}", {"climate": table_of(INDEX)})
    assert plan is not None
    assert plan.sources is not None
    states = states_of(plan.sources, INDEX)
    assert states is not None
    return states


@pytest.mark.parametrize(
    ("asked", "held", "motes", "cheaper"),
    [
        # Where nothing is known yet, as many groups as a mote puts together.
        ("nodeid, COUNT(*) FROM climate GROUP BY nodeid", 0, 20, True),
        ("nodeid, COUNT(*) FROM climate GROUP BY nodeid", 0, 200, False),
        # 15 bytes a tuple, 10 a group.
        ("nodeid, COUNT(*) FROM climate GROUP BY nodeid", 20, 20, True),
        ("nodeid, MIN(temp), MAX(temp), SUM(temp) FROM climate GROUP BY nodeid", 12, 20, False),
        ("nodeid, MIN(temp), MAX(temp), SUM(temp) FROM climate GROUP BY nodeid", 100, 20, True),
        ("epoch, MIN(temp), MAX(temp), SUM(temp) FROM climate GROUP BY epoch", 100, 3, True),
        ("epoch, MIN(temp), MAX(temp), SUM(temp) FROM climate GROUP BY epoch", 100, 1, False),
        ("epoch, COUNT(*) FROM climate WHERE epoch < 2 GROUP BY epoch", 100, 2, True),
        ("light, MIN(temp), MAX(temp), SUM(temp) FROM climate GROUP BY light", 400, 20, False),
        ("light, MIN(temp), MAX(temp), SUM(temp) FROM climate WHERE light < 330 AND light > 310 GROUP BY light", 4000, 20, True),
    ],
)  # fmt: skip
def test_states_by_group_travel_where_they_take_less(
    asked: str, held: int, motes: int, cheaper: bool
) -> None:
    price = price_of(by_group(asked), INDEX, Load({1: held}, motes))
    assert price.are_cheaper == cheaper, price
    assert "tuples travel, not states" in price.line()


def test_records_of_groups_are_of_one_time_and_all_of_it() -> None:
    states = by_group("nodeid, COUNT(*) FROM climate GROUP BY nodeid")
    ask = IndexAsk(INDEX, [(0, NULL)] * 3, frozenset(), states=states)
    asks, tokens = IndexAsks(iter(range(1, 99)).__next__), list[int]()
    asks.add(ask)

    def told(part: int, last: int, groups: list[tuple[int, int]]) -> None:
        tuples = b"".join(struct.pack("<iiH", key, 0, count) for key, count in groups)
        body = {"node": 1, "token": tokens[-1], "part": part, "last": last, "tuples": tuples}
        asks.hear(Stored.parse(Stored.build(body)), 0.0)

    for now in (0.0, 100.0):
        asks.advance(now, lambda _, token, __: tokens.append(token))
        told(1, 1, [(3, 5)])
        assert not ask.over
        # The first record of the first time is lost.
        if now:
            told(0, 0, [(4, 7), (3, 6)])
    assert ask.over
    assert states.merged(ask.told_states()) == {
        3: {(Aggregate.COUNT, None): (0, 11)},
        4: {(Aggregate.COUNT, None): (0, 7)},
    }
    assert states.read([b"no group"]) is None


def test_states_that_were_put_together_count_once() -> None:
    plan = planned("SELECT SUM(light), COUNT(*) FROM climate", {"climate": table_of(FOUR)})
    assert plan is not None
    assert plan.sources is not None
    states = states_of(plan.sources, FOUR)
    assert states is not None
    ask = IndexAsk(FOUR, [(0, NULL)] * 3, frozenset(), states=states)
    asks, tokens = IndexAsks(iter(range(1, 99)).__next__), list[int]()
    asks.add(ask)

    def told(
        token: int, nodes: list[int], total: int, kinds: tuple[int, ...] = (Aggregate.SUM, Aggregate.COUNT)
    ) -> None:
        cells = struct.pack("<qIqI", total, len(nodes), 0, len(nodes))
        asks.hear_states(states_body(token, nodes, bytes(kinds) + cells), 0.0)

    asks.advance(0.0, lambda _, token, __: tokens.append(token))
    # Of another question, of other aggregates, of motes that were not asked, of nobody, malformed.
    told(99, [1, 2, 3, 4], 1)
    told(tokens[0], [1, 2, 3, 4], 1, (Aggregate.MIN, Aggregate.COUNT))
    told(tokens[0], [1, 7], 1)
    told(tokens[0], [], 1)
    asks.hear_states(
        States.parse(States.build({"token": tokens[0], "aggregates": 2, "motes": 200, "more": b""})), 0.0
    )
    assert ask.missing == [1, 2, 3, 4]
    told(tokens[0], [1, 2], 30)
    told(tokens[0], [2, 1], 30)
    # A mote changed its parent: less is known than before, or as much.
    told(tokens[0], [2, 3], 50)
    assert ask.missing == [3, 4]
    asks.advance(100.0, lambda _, token, __: tokens.append(token))
    assert len(tokens) == 3
    told(tokens[0], [2, 3, 4], 900)
    assert ask.missing == [1]
    told(tokens[2], [1], 5)
    assert ask.over
    assert states.merged(ask.told_states()) == {
        ONLY: {(Aggregate.SUM, 0): (905, 4), (Aggregate.COUNT, None): (0, 4)}
    }
