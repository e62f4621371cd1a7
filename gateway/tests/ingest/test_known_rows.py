"""Which rows have come: as a set of them would have it, for as long as is remembered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gateway.tests.logs import plan_of
from skerry.ingest.known_rows import EPOCHS, KnownRows
from skerry.planner.physical.merge import merge
from skerry.storage.log.record import RECORD
from skerry.streams.stream import Stream

#: Stream, mote, epoch and, of a join, the stored rows: near each other, so that they come again.
keys = st.tuples(st.integers(1, 2), st.integers(0, 2), st.integers(0, 3 * EPOCHS)) | st.tuples(
    st.just(3), st.integers(0, 2), st.integers(0, 3 * EPOCHS), st.integers(0, 2)
)


@given(st.lists(st.tuples(st.lists(keys, max_size=8), st.booleans()), max_size=20))
def test_as_a_set_of_rows_would_have_it(batches: list[tuple[list[tuple[int, ...]], bool]]) -> None:
    """Batches of rows, each of which is stored or, as on a full disk, not."""
    known, there = KnownRows(), set[tuple[int, ...]]()
    for batch, stored in batches:
        before = set(there)
        undo = known.begin()
        for key in batch:
            assert known.add(key) == (key not in there)
            there.add(key)
        if not stored:
            undo()
            there = before
        assert all((key in known) == (key in there) for key in batch)


def stream(number: int, numbered: int) -> Stream:
    query = merge([plan_of("SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s")])
    return Stream(number=number, session=1, query=number, mote_query=replace(query, numbered=numbered))


@given(st.lists(st.lists(keys, max_size=30), max_size=3))
def test_what_is_stored_is_known_as_if_it_had_come_row_by_row(batches: list[list[tuple[int, ...]]]) -> None:
    streams = {1: stream(1, 0), 2: stream(2, 0), 3: stream(3, 1)}
    one_by_one, at_once = KnownRows(), KnownRows()
    for batch in batches:
        records = np.zeros(len(batch), RECORD)
        for record, (number, node, epoch, *others) in zip(records, batch, strict=True):
            record["stream"], record["node"], record["epoch"] = number, node, epoch
            record["value"][: len(others)] = others
            one_by_one.add((number, node, epoch, *others))
        at_once.remember(records, streams)
        assert list(at_once._runs.items()) == list(one_by_one._runs.items())


def test_the_oldest_runs_of_epochs_go_first() -> None:
    known = KnownRows(runs=2)
    first, second, third = (1, 7, 5), (1, 7, EPOCHS), (2, 7, 5)
    assert known.add(first)
    assert known.add(second)
    assert known.add((1, 7, 6))  # in the first's run
    assert known.add(third)
    assert (first in known, second in known, third in known) == (False, True, True)


def test_rows_of_many_busy_motes_are_known_for_minutes() -> None:
    """A hundred roots of twenty motes that send ten rows a second each: the first rows are known ten minutes later."""
    motes, epochs = 2000, 600 * 10
    known = KnownRows()
    for epoch in range(0, epochs, EPOCHS):
        for mote in range(motes):
            known.add((mote // 20, mote, epoch))
    assert all((mote // 20, mote, 0) in known for mote in range(motes))
