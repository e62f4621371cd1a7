"""Which partial states may be withheld: those that change nothing in what was heard."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.tests.query.mote import COMPLETE, Mote, field, program
from skerry_protocol import records
from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op, instruction
from skerry_protocol.codes import Aggregate, QueryFlag

TEMP = instruction(Op.ATTR, BY_NAME["temp"].number)
LEVEL = instruction(Op.ATTR, BY_NAME["level"].number)
FLAGS = QueryFlag.AGGREGATE | QueryFlag.SNOOP
QUERY = 3
BEST = 3
EXTREMES = program(
    [field(ValueFormat.I32, LEVEL, Aggregate.GROUP)]
    + [field(ValueFormat.I32, TEMP, kind) for kind in (Aggregate.MIN, Aggregate.MAX)],
    flags=FLAGS,
)
LISTS = program(
    [{"format": BEST, "aggregate": int(kind), "code": TEMP} for kind in (Aggregate.TOP, Aggregate.BOTTOM)],
    flags=FLAGS,
)  # fmt: skip

#: By mote, which stands for one reading.
readings = st.dictionaries(st.integers(0, 40), st.none() | st.integers(-3, 3), min_size=1, max_size=8)


def record(states: list[tuple[int, int]], epoch: int = 5) -> bytes:
    while states and states[-1] == (0, 0):
        states = states[:-1]
    cells = [{"count": count, "value": value} for count, value in states]
    fields = {"query": QUERY, "epoch": epoch, "motes": 1, "overflow": 0, "states": cells}
    return bytes(records.Partial.build(fields))


def extremes(of: dict[int, int | None], group: int = 1) -> bytes:
    values = [value for value in of.values() if value is not None]
    low_high = [(len(values), min(values)), (len(values), max(values))] if values else []
    return record([(len(of), group), *low_high])


def lists(of: dict[int, int | None]) -> bytes:
    known = [(value, mote) for mote, value in of.items() if value is not None]
    cells = []
    for sign in (-1, 1):
        best = sorted(known, key=lambda entry: (sign * entry[0], entry[1]))[:BEST]
        cells += [(mote + 1, value) for value, mote in best] + [(0, 0)] * (BEST - len(best))
    return record(cells)


@given(own=readings, heard=readings)
def test_extremes_within_what_was_heard(query_library: Path, own: dict[int, int | None], heard: dict[int, int | None]) -> None:  # fmt: skip
    mote = Mote(query_library)
    assert mote.install(EXTREMES, QUERY) == COMPLETE
    mine, theirs = ({value for value in of.values() if value is not None} for of in (own, heard))
    within = not mine or (bool(theirs) and min(theirs) <= min(mine) and max(mine) <= max(theirs))
    assert mote.superfluous(extremes(own), extremes(heard)) == within
    assert not mote.superfluous(extremes(own, group=2), extremes(heard))


@given(of=readings, split=st.sets(st.integers(0, 40)))
def test_lists_that_get_no_other_entry(query_library: Path, of: dict[int, int | None], split: set[int]) -> None:  # fmt: skip
    """Equal readings included: of these the list has those of the lower addresses."""
    own, heard = ({k: v for k, v in of.items() if (k in split) == side} for side in (True, False))
    mote = Mote(query_library)
    assert mote.install(LISTS, QUERY) == COMPLETE
    assert mote.superfluous(lists(own), lists(heard)) == (lists(of) == lists(heard))


@pytest.mark.parametrize(
    ("own", "heard"),
    [
        (record([(1, 1), (1, 3), (1, 3)]), record([(1, 1), (1, 3), (1, 3)], epoch=6)),
        (record([(1, 1), (1, 3), (1, 3)])[:-1], record([(1, 1), (1, 3), (1, 3)])),
        (record([(1, 1), (1, 3), (1, 3)]), record([(1, 1)] * 4)),
    ],
    ids=["another epoch", "half a cell", "too many cells"],
)
def test_what_cannot_be_compared_is_sent(mote: Mote, own: bytes, heard: bytes) -> None:
    mote.install(EXTREMES, QUERY)
    assert not mote.superfluous(own, heard)
