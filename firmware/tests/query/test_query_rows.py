"""What a row says: attributes, predicate, formats, NULLs."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.tests.query.mote import NO_LEVEL, SECOND, Mote, Record, field, program
from skerry_protocol.attributes import ATTRIBUTES, BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op, constant, instruction
from skerry_protocol.codes import PacketType
from skerry_protocol.limits import FIELDS_MAXIMUM

TEMP = BY_NAME["temp"].number


def attribute(name: str) -> bytes:
    """Code that reads an attribute."""
    return instruction(Op.ATTR, BY_NAME[name].number)


def one_row(mote: Mote, data: bytes) -> Record:
    """The row of a program's first epoch."""
    mote.synchronise(99.9)
    mote.install(data, 1)
    mote.run(1)
    (record,) = mote.records()
    return record


def test_board_net_and_settings_attributes(mote: Mote) -> None:
    mote.tree(parent=21, level=3)
    names = ["nodeid", "parent", "level", "epoch", "xpos", "ypos", "free_ram", "queue_length"]
    row = one_row(mote, program([field(ValueFormat.I32, attribute(name)) for name in names]))
    assert row.type is PacketType.RESULT
    assert (row.body.query, row.body.node, row.body.epoch, row.body.nulls) == (1, 7, 100, 0)
    assert struct.unpack("<8i", row.body.values) == (7, 21, 3, 100, -1250, 300, 1234, 0)


def test_mote_without_a_tree_has_neither_parent_nor_level(mote: Mote) -> None:
    mote.tree(parent=0, level=NO_LEVEL)
    row = one_row(
        mote, program([field(ValueFormat.U16, attribute(name)) for name in ("parent", "level", "nodeid")])
    )
    assert row.body.nulls == 0b011
    assert row.body.values == bytes([0, 0, 0, 0, 7, 0])


def test_epoch_beyond_31_bits_is_null(mote: Mote) -> None:
    mote.synchronise(2**31 - 0.5)
    mote.install(program([field(ValueFormat.I32, attribute("epoch"))]), 1)
    mote.run(1)
    (row,) = mote.records()
    assert (row.body.epoch, row.body.nulls) == (2**31, 1)


def test_absent_failed_and_unknown_sensors_are_null(mote: Mote) -> None:
    mote.sensor(TEMP, None)
    mote.sensor(BY_NAME["voltage"].number, 2987)
    codes = [attribute("temp"), attribute("light"), instruction(Op.ATTR, 29), attribute("voltage")]
    row = one_row(mote, program([field(ValueFormat.I16, code) for code in codes]))
    assert row.body.nulls == 0b0111
    assert row.body.values == bytes(6) + (2987).to_bytes(2, "little")


def test_earlier_reading_is_not_taken_for_a_new_one(mote: Mote) -> None:
    """A sensor that fails after it has worked gives NULL."""
    mote.sensor(TEMP, 2000)
    mote.synchronise(99.9)
    mote.install(program([field(ValueFormat.I16, attribute("temp"))]), 1)
    mote.run(1)
    mote.sensor(TEMP, None)
    mote.run(1)
    assert [row.body.nulls for row in mote.records()] == [0, 1]


@given(
    columns=st.lists(
        st.tuples(st.sampled_from(ValueFormat), st.integers(-70000, 70000)),
        min_size=1,
        max_size=FIELDS_MAXIMUM,
    )
)
def test_value_that_does_not_fit_its_format_is_null(
    query_library: Path, columns: list[tuple[ValueFormat, int]]
) -> None:
    row = one_row(
        Mote(query_library),
        program([field(format, constant(value)) for format, value in columns]),
    )
    at = 0
    for i, (format, value) in enumerate(columns):
        (packed,) = struct.unpack_from("<" + format.letter, row.body.values, at)
        at += format.size
        fits = format.minimum <= value <= format.maximum
        assert packed == (value if fits else 0)
        assert row.body.nulls >> i & 1 == (not fits)
    assert len(row.body.values) == at


@pytest.mark.parametrize(
    ("where", "passes"),
    [
        (b"", True),
        (constant(1), True),
        (constant(0), False),
        (instruction(Op.NULL), False),
        (attribute("temp") + constant(2100) + instruction(Op.GT), True),
        (attribute("temp") + constant(2200) + instruction(Op.GT), False),
        (attribute("light") + constant(0) + instruction(Op.GE), False),
    ],
)
def test_only_rows_whose_predicate_is_true_are_sent(mote: Mote, where: bytes, passes: bool) -> None:
    mote.sensor(TEMP, 2150)
    mote.synchronise(99.9)
    mote.install(program([field(ValueFormat.U16, attribute("nodeid"))], where=where), 1)
    mote.run(1)
    assert len(list(mote.records())) == passes
    assert mote.rows == passes


def test_predicate_and_columns_are_acquired_together(mote: Mote) -> None:
    for number in (TEMP, BY_NAME["light"].number):
        mote.sensor(number, 5)
    one_row(mote, program([field(ValueFormat.U16, attribute("temp"))], where=attribute("light")))
    assert mote.last_mask == 1 << TEMP | 1 << BY_NAME["light"].number
    assert mote.acquisitions == 1


def test_query_without_sensors_acquires_nothing(mote: Mote) -> None:
    mote.sensor(TEMP, 5)
    row = one_row(mote, program([field(ValueFormat.U16, attribute("nodeid"))]))
    assert mote.acquisitions == 0
    assert row.local / SECOND == pytest.approx(0.1, abs=0.001)


def test_every_attribute_of_the_table_is_read(mote: Mote) -> None:
    """A new attribute must come from a sensor or be known to attribute.c."""
    mote.tree(parent=1, level=1)
    for number in range(BY_NAME["light"].number, BY_NAME["accel_y"].number + 1):
        mote.sensor(number, number)
    mote.synchronise(99.9)
    for query, some in enumerate((ATTRIBUTES[:8], ATTRIBUTES[8:]), start=1):
        mote.install(program([field(ValueFormat.I32, instruction(Op.ATTR, a.number)) for a in some]), query)
    mote.run(1)
    assert [row.body.nulls for row in mote.records()] == [0, 0]
