"""Rows of many queries and widths that come together, as records."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skerry.ingest.plain_rows import RowRecords
from skerry.storage.log.record import RECORD, Kind, damaged, intact, seal
from skerry_protocol.limits import FIELDS_MAXIMUM

ARRIVAL = 1_700_000_000_000_000
numbers = st.integers(-(2**31), 2**32 - 1)
rows = st.tuples(
    st.integers(1, 2**32 - 1), st.integers(0, 0xFFFF), st.integers(0, 2**32 - 1), st.integers(0, 0xFFF),
    st.integers(0, 2**50), st.lists(numbers, max_size=FIELDS_MAXIMUM).map(tuple), st.integers(1, 0x8000), st.integers(0, 0xFFFF),
)  # fmt: skip


@given(st.lists(rows, max_size=30))
def test_each_row_is_the_record_of_its_place(
    drawn: list[tuple[int, int, int, int, int, tuple[int, ...], int, int]],
) -> None:
    made = RowRecords(ARRIVAL)
    for row in drawn:
        made.add(*row)
    found = made.records()
    assert len(found) == len(drawn)
    for record, (stream, node, epoch, nulls, sample, values, combined, left_out) in zip(
        found, drawn, strict=True
    ):
        expected = np.zeros((), RECORD)
        expected["stream"], expected["node"], expected["epoch"], expected["nulls"] = (
            stream,
            node,
            epoch,
            nulls,
        )
        expected["sample"], expected["arrival"], expected["kind"] = sample, ARRIVAL, Kind.ROW
        expected["motes"], expected["revision"] = combined, left_out
        expected["value"][: len(values)] = values
        assert record.tobytes() == expected.tobytes()


def test_a_count_that_16_bits_do_not_hold_ends_there() -> None:
    made = RowRecords(ARRIVAL)
    made.add(1, 2, 3, 0, 4, (5,), 1 + 0xFFFF, 6)
    assert made.records()["motes"].tolist() == [0xFFFF]


@given(st.lists(rows, min_size=1, max_size=5))
def test_sealed_records_are_intact_and_a_changed_byte_is_noticed(
    drawn: list[tuple[int, int, int, int, int, tuple[int, ...], int, int]],
) -> None:
    made = RowRecords(ARRIVAL)
    for row in drawn:
        made.add(*row)
    records = made.records()
    data, width = seal(records), RECORD.itemsize
    assert all(intact(data[at : at + width]) for at in range(0, len(data), width))
    assert not len(damaged(records))
    changed = bytearray(data[:width])
    changed[7] ^= 1
    assert not intact(bytes(changed))
