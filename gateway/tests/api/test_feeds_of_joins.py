"""Rows of a join share their number: feeds and clients keep them together, and none comes twice."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api import feeds
from skerry.api.feeds import EventWriter, _chunks
from skerry.client.rows import Rows, _Events
from skerry.execution.deliveries import Delivery

sizes = st.lists(st.integers(1, 5), min_size=1, max_size=12)


def delivery(groups: list[int]) -> Delivery:
    numbers = np.repeat(np.arange(len(groups)) * 3 + 1, groups)
    columns = pa.RecordBatch.from_pydict({"x": np.arange(len(numbers))})
    return Delivery(numbers, columns)


class NoClient:
    url = "nowhere"


def new_rows() -> Rows:
    return Rows(NoClient(), {"id": "1", "columns": [], "into": None, "srt": None})  # type: ignore[arg-type]


@given(sizes, st.integers(1, 7))
def test_chunks_keep_rows_of_one_number_together(groups: list[int], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feeds, "CHUNK_ROWS", size)
        parts = list(_chunks([delivery(groups)]))
    assert [x for part in parts for x in part.columns.column("x").to_pylist()] == list(range(sum(groups)))
    for one, other in pairwise(parts):
        assert one.numbers[-1] < other.numbers[0]


@given(sizes, st.lists(st.integers(0, 60), max_size=6))
def test_a_connection_that_breaks_anywhere_costs_no_row_and_brings_none_twice(
    groups: list[int], breaks: list[int]
) -> None:
    whole, rows, got = delivery(groups), new_rows(), list[int]()
    for lines_read in [*breaks, 1 << 30]:
        left = whole.behind(-1 if rows.position is None else rows.position)
        text = EventWriter().rows(left).decode() if len(left.numbers) else ""
        events = _Events(rows)
        for line in text.split("\n")[:lines_read]:
            row = events.line(line)
            if row is not None:
                got.append(row["x"])
    assert got == list(range(sum(groups)))
