"""APPROXIMATE WITHIN on a mote: whose readings are alike, and what a parent makes of children that are silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware.tests.query.mote import COMPLETE, REFUSED, Mote, field, program
from skerry_protocol import codes, records
from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op, constant, instruction
from skerry_protocol.codes import Aggregate, QueryFlag

TEMP = instruction(Op.ATTR, BY_NAME["temp"].number)
QUERY, EPOCH, EVERY = 3, 300, 8
TOLERANCE = 50
FIELDS = [
    field(ValueFormat.I32, TEMP, Aggregate.SUM),
    field(ValueFormat.I32, b"", Aggregate.COUNT),
    field(ValueFormat.I32, constant(TOLERANCE), Aggregate.REPRESENTATIVE),
]
FLAGS = QueryFlag.AGGREGATE | QueryFlag.SNOOP


@pytest.fixture
def parent(query_library: Path) -> Mote:
    mote = Mote(query_library)
    assert mote.install(program(FIELDS, flags=FLAGS), QUERY) == COMPLETE
    return mote


def state(value: int, *, names: int | None = None, epoch: int = EPOCH, motes: int = 1, counts: int = 1) -> bytes:  # fmt: skip
    cells = [{"count": counts, "value": value}, {"count": counts, "value": 0}]
    cells += [] if names is None else [{"count": names + 1, "value": 0}]
    fields = {"query": QUERY, "epoch": epoch, "motes": motes, "overflow": 0, "states": cells}
    return bytes(records.Partial.build(fields))


def filled(mote: Mote) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Epoch, motes and cells of what the parent adds."""
    list(mote.records())
    mote.fill()
    return added(mote)


def added(mote: Mote) -> list[tuple[int, int, list[tuple[int, int]]]]:
    return [
        (r.body.epoch, r.body.motes, [(cell.count, cell.value) for cell in r.body.states][:2])
        for r in mote.records()
    ]


@pytest.mark.parametrize(
    ("own", "heard", "alike"),
    [
        (state(1000), state(1050), True),
        (state(1050), state(1000), True),
        (state(1000), state(1051), False),
        (state(-(2**31)), state(2**31 - 1), False),
        (state(1000), state(1000, epoch=EPOCH + 1), False),
        (state(1000, motes=2), state(1000), False),
        (state(1000), state(1000, motes=2), False),
        (state(1000, counts=0), state(1000), False),
        (state(1000), state(1000, names=4), True),
        (state(1000, names=4), state(1000), False),
        (state(1000), state(1000)[:-6], False),
    ],
    ids=[
        "above",
        "below",
        "beyond",
        "far beyond",
        "another epoch",
        "own of two",
        "heard of two",
        "own is NULL",
        "heard names",
        "own names",
        "cut",
    ],
)
def test_whose_readings_are_alike(parent: Mote, own: bytes, heard: bytes, alike: bool) -> None:
    """Those of two motes that stand for nobody else; the own one has not said yet whom it counts as."""
    assert parent.alike(own, heard) == alike


def test_silent_child_counts_as_its_representative(parent: Mote) -> None:
    assert parent.child(5, state(1000)) == state(1000)
    assert parent.child(6, state(1010, names=5)) == state(1010)
    assert filled(parent) == []
    parent.child(5, state(2000, epoch=EPOCH + 1))
    assert filled(parent) == [(EPOCH + 1, 1, [(1, 2000), (1, 0)])]
    assert filled(parent) == [], "once"


def test_child_is_counted_on_for_seven_epochs(parent: Mote) -> None:
    parent.child(6, state(1010, names=5))
    for later in range(1, 300):
        parent.child(5, state(1000 + later, epoch=EPOCH + later))
        assert len(filled(parent)) == (later < EVERY), later
    parent.child(6, state(0, epoch=EPOCH + 300))
    parent.child(5, state(0, epoch=EPOCH + 301))
    assert len(filled(parent)) == 1, "it is back"


def test_nobody_counts_as_one_that_was_not_heard_alone(parent: Mote) -> None:
    parent.child(6, state(1010, names=5))
    assert filled(parent) == []
    parent.child(5, state(5000, motes=5, counts=5, epoch=EPOCH + 1))
    assert filled(parent) == []


def test_late_child_makes_good_the_difference(parent: Mote) -> None:
    for child, names in ((5, None), (6, 5)):
        parent.child(child, state(1000, names=names))
    parent.child(5, state(1000, epoch=EPOCH + 1))
    assert len(filled(parent)) == 1
    assert parent.child(6, state(1300, epoch=EPOCH + 1)) == b""
    assert added(parent) == [(EPOCH + 1, 0, [(0, 300), (0, 0)])]
    assert filled(parent) == []


def test_difference_adds_to_a_sum(parent: Mote) -> None:
    zero = {"count": 0, "value": 0}
    fields = {
        "query": QUERY,
        "epoch": EPOCH,
        "motes": 0,
        "overflow": 0,
        "states": [{"count": 0, "value": -7}],
    }
    merged = parent.merge(state(1000) + bytes(6), bytes(records.Partial.build(fields)))
    assert merged is not None
    partial = records.Partial.parse(merged)
    assert (partial.motes, partial.states[0].count, partial.states[0].value) == (1, 1, 993)
    assert (partial.states[2].count, partial.states[2].value) == (zero["count"], zero["value"])


def test_more_children_than_places(parent: Mote) -> None:
    """Who was silent longest gives way."""
    for child in range(100, 124):
        parent.child(child, state(0, names=100 if child > 100 else None))
    parent.child(100, state(0, epoch=EPOCH + 1))
    parent.child(200, state(0, epoch=EPOCH + 1, names=100))
    assert len(filled(parent)) == 22


def test_places_take_memory(query_library: Path) -> None:
    mote = Mote(query_library)
    outcomes = [mote.install(program(FIELDS, flags=FLAGS), query) for query in range(1, 7)]
    assert outcomes == [COMPLETE] * 5 + [REFUSED]
    assert mote.refusal()[1] == codes.RefusalReason.MEMORY
