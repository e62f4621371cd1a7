"""Programs arrive in fragments, in any order, and are held, listed, passed on and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.tests.query.mote import COMPLETE, KNOWN, REFUSED, STORED, Mote, field, fragments, program
from skerry_protocol import bytecode, dissemination, limits
from skerry_protocol.attributes import ValueFormat
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate, QueryFlag, RefusalReason
from skerry_protocol.limits import FIELDS_MAXIMUM, PROGRAM_MAXIMUM, QUERIES_MAXIMUM, WINDOW_MAXIMUM

NODEID = bytecode.instruction(Op.ATTR, 0)
ROW = [field(ValueFormat.U16, NODEID)]
SMALL = program(ROW)


def long_program(constant: int = 1000) -> bytes:
    """A program of exactly the largest size."""
    fixed = len(program([field(ValueFormat.I32, b"")] * 2))
    filler = bytecode.constant(constant)
    room = PROGRAM_MAXIMUM - fixed

    def code(size: int) -> bytes:
        left = size - len(filler)
        return filler + bytes([Op.NOT]) * left

    return program([field(ValueFormat.I32, code(room // 2)), field(ValueFormat.I32, code(room - room // 2))])


LONG = long_program()


def test_one_fragment(mote: Mote) -> None:
    assert mote.install(SMALL, 9) == COMPLETE
    assert mote.install(SMALL, 9) == KNOWN
    assert mote.queries() == [9]


def test_largest_program_is_passed_on_unchanged(mote: Mote) -> None:
    assert len(LONG) == PROGRAM_MAXIMUM
    assert [mote.install_fragment(body) for body in fragments(LONG, 5)] == [STORED, COMPLETE]
    assert [mote.fragment(5, offset) for offset in (0, 96)] == fragments(LONG, 5, version=0)
    assert mote.fragment(5, 192) == b""
    assert mote.fragment(5, 1) == b""
    assert mote.fragment(6, 0) == b""


@given(st.data())
def test_fragments_of_several_queries_in_any_order_with_duplicates(
    query_library: Path, data: st.DataObject
) -> None:
    """However fragments are shuffled and repeated, each program becomes whole once and stays what it was."""
    mote = Mote(query_library)
    programs = {query: long_program(1000 + query) if query % 3 else SMALL for query in range(1, 7)}
    bodies = [body for query, code in programs.items() for body in fragments(code, query)]
    order = data.draw(st.permutations(bodies + data.draw(st.lists(st.sampled_from(bodies), max_size=12))))
    outcomes = [mote.install_fragment(body) for body in order]
    assert outcomes.count(COMPLETE) == len(programs)
    assert REFUSED not in outcomes
    assert sorted(mote.queries()) == sorted(programs)
    for query, code in programs.items():
        parts = [mote.fragment(query, offset)[5:] for offset in range(0, len(code), 96)]
        assert b"".join(parts) == code


def test_more_queries_than_slots_are_refused_and_counted(mote: Mote) -> None:
    for query in range(1, QUERIES_MAXIMUM + 1):
        assert mote.install(SMALL, query) == COMPLETE
    assert mote.install(SMALL, 100) == REFUSED
    assert mote.refused == 1
    mote.stop(3)
    assert mote.install(SMALL, 100) == COMPLETE
    mote.stop(0)
    assert mote.queries() == []


def test_half_received_program_gives_way(mote: Mote) -> None:
    for query in range(1, QUERIES_MAXIMUM):
        mote.install(SMALL, query)
    first, second = fragments(LONG, 50)
    assert mote.install_fragment(first) == STORED
    assert mote.queries() == list(range(1, QUERIES_MAXIMUM))
    assert mote.install(SMALL, 51) == COMPLETE
    assert mote.install_fragment(second) == REFUSED


def test_fragments_of_different_versions_do_not_mix(mote: Mote) -> None:
    older, newer = fragments(LONG, 4, version=1), fragments(long_program(1001), 4, version=2)
    assert mote.install_fragment(older[0]) == STORED
    assert mote.install_fragment(newer[1]) == STORED
    assert mote.install_fragment(newer[0]) == COMPLETE
    assert mote.fragment(4, 0)[5:] == newer[0][5:]


def test_reused_id_replaces_its_query_only_when_newer(mote: Mote) -> None:
    other = program([field(ValueFormat.U8, NODEID)])
    assert mote.install(SMALL, 4, version=10) == COMPLETE
    assert mote.install(other, 4, version=9) == KNOWN
    assert mote.install(SMALL, 4, version=30) == KNOWN
    assert mote.install(other, 4, version=20) == KNOWN
    assert mote.fragment(4, 0)[5:] == SMALL
    assert mote.install(other, 4, version=31) == COMPLETE
    assert mote.fragment(4, 0)[5:] == other


@pytest.mark.parametrize("order", [(0, 1, 0), (1, 0, 1), (0, 0, 1, 0), (1, 1, 0, 1)])
@pytest.mark.parametrize("changed", [0, 1])
def test_reused_id_replaces_a_query_of_which_one_fragment_is_the_same(
    mote: Mote, order: tuple[int, ...], changed: int
) -> None:
    """What repeats a part of the old program says nothing of the other part."""
    before = fragments(LONG, 4, version=10)
    constant = bytecode.constant(1000)
    place = LONG.index(constant) if changed == 0 else LONG.rindex(constant)
    other = LONG[:place] + bytecode.constant(1001) + LONG[place + len(constant) :]
    after = fragments(other, 4, version=31)
    assert [a[5:] == b[5:] for a, b in zip(before, after, strict=True)] == [changed == 1, changed == 0]
    for body in before:
        mote.install_fragment(body)
    for index in order:
        mote.install_fragment(after[index])
    assert mote.queries() == [4]
    assert [mote.fragment(4, offset)[5:] for offset in (0, 96)] == [body[5:] for body in after]


def test_version_comparison_survives_the_wrap(mote: Mote) -> None:
    other = program([field(ValueFormat.U8, NODEID)])
    mote.install(SMALL, 4, version=65535)
    assert mote.install(other, 4, version=2) == COMPLETE


@pytest.mark.parametrize(
    "change",
    [
        {"query": 0},
        {"total": 0},
        {"total": PROGRAM_MAXIMUM + 1},
        {"total": len(SMALL) + 1},
        {"total": len(SMALL) - 1},
        {"offset": 96},
        {"offset": 2},
        {"offset": 95},
        {"data": SMALL + b"\0"},
        {"data": b""},
    ],
)
def test_malformed_fragment_is_refused(mote: Mote, change: dict[str, object]) -> None:
    body = {"query_version": 1, "query": 1, "total": len(SMALL), "offset": 0, "data": SMALL}
    assert mote.install_fragment(dissemination.QueryInstall.build(body | change)) == REFUSED
    assert mote.refused == 1
    assert mote.queries() == []


COUNT_ALL = field(ValueFormat.U16, b"", Aggregate.COUNT)
BAD_PROGRAMS = {
    "unknown flag": program(ROW, flags=128),
    "period too short": program(ROW, period=limits.PERIOD_FAST_MINIMUM_MS - 1),
    "period too short to aggregate": program(
        [COUNT_ALL], flags=QueryFlag.AGGREGATE, period=limits.PERIOD_MINIMUM_MS - 1
    ),
    "period too long": program(ROW, period=limits.PERIOD_MAXIMUM_MS + 1),
    "no fields": program([]),
    "too many fields": program(ROW * (FIELDS_MAXIMUM + 1)),
    "format 0": program([{"format": 0, "aggregate": 0, "code": NODEID}]),
    "format 6": program([{"format": 6, "aggregate": 0, "code": NODEID}]),
    "aggregate in a row query": program([field(ValueFormat.U16, NODEID, Aggregate.SUM)]),
    "plain field in an aggregate query": program(ROW, flags=QueryFlag.AGGREGATE),
    "unknown aggregate": program([field(ValueFormat.U16, NODEID, 200)], flags=QueryFlag.AGGREGATE),
    "SUM without code": program([field(ValueFormat.U16, b"", Aggregate.SUM)], flags=QueryFlag.AGGREGATE),
    "row field without code": program([field(ValueFormat.U16, b"")]),
    "bad predicate": program(ROW, where=NODEID + NODEID),
    "bad field code": program([field(ValueFormat.U16, b"\xff")]),
    "cut off": SMALL[:-1],
    "left over": SMALL + b"\x01",
    "predicate past the end": SMALL[:13] + b"\xf0" + SMALL[14:],
    "header cut off": SMALL[:13],
}


@pytest.mark.parametrize("name", BAD_PROGRAMS)
def test_bad_program_is_refused_and_counted(mote: Mote, name: str) -> None:
    assert mote.install(BAD_PROGRAMS[name], 1) == REFUSED, name
    assert mote.refused == 1
    assert mote.queries() == []


def test_bounds_are_accepted(mote: Mote) -> None:
    assert mote.install(program(ROW * FIELDS_MAXIMUM, period=limits.PERIOD_MINIMUM_MS), 1) == COMPLETE
    assert mote.install(program(ROW, period=limits.PERIOD_MAXIMUM_MS), 2) == COMPLETE
    assert mote.install(program([COUNT_ALL], flags=QueryFlag.AGGREGATE | QueryFlag.ONCE), 3) == COMPLETE


@given(st.binary(max_size=60) | st.lists(st.sampled_from(list(Op)), max_size=30).map(bytes))
def test_check_agrees_with_the_assembler(query_library: Path, code: bytes) -> None:
    """vm_check accepts exactly what skerry_protocol.bytecode.check accepts."""
    mote = Mote(query_library)
    try:
        bytecode.check(code)
        accepted = True
    except bytecode.BytecodeError:
        accepted = False
    assert mote.accepts(code) == accepted


def window(rows: int, slide: int = 1, power: int = 0, kind: Aggregate = Aggregate.WINAVG) -> dict[str, Any]:
    """A field over so many rows."""
    return field(ValueFormat.I32, bytes([rows, slide, power]) + NODEID, kind)


def test_windows_that_do_not_fit_are_refused_and_told_once(mote: Mote) -> None:
    """Five times 4 x 64 readings leave no room for a sixth."""
    large = program([window(WINDOW_MAXIMUM)])
    installed = 0
    while mote.install(large, installed + 1) == COMPLETE:
        installed += 1
    assert installed == 5
    query, reason, missing = mote.refusal()
    assert (query, reason) == (6, RefusalReason.MEMORY)
    assert 0 < missing <= 4 * WINDOW_MAXIMUM + len(large)
    assert mote.install(large, 6) == REFUSED
    assert mote.refusals == 1
    assert mote.was_refused(6)
    mote.stop(7)
    assert mote.was_refused(6), "nothing has stopped"
    mote.stop(2)
    assert not mote.was_refused(6), "there is room that was not there before: neighbours are asked for it"
    assert mote.install(large, 6) == COMPLETE
    held = [mote.fragment(query, 0)[5:] for query in (1, 3, 4, 5, 6)]
    assert held == [large] * 5, "memory moved, programs did not change"


def test_no_slot_is_told(mote: Mote) -> None:
    for query in range(1, QUERIES_MAXIMUM + 1):
        assert mote.install(SMALL, query) == COMPLETE
    assert mote.install(SMALL, 50) == REFUSED
    assert mote.refusal() == (50, RefusalReason.SLOTS, 0)


@pytest.mark.parametrize(
    "bad",
    [
        window(0), window(WINDOW_MAXIMUM + 1), window(5, 0), window(5, power=10),
        window(16, kind=Aggregate.EXPAVG), window(0, kind=Aggregate.EXPAVG),
        field(ValueFormat.I32, bytes([5, 1, 0]), Aggregate.WINAVG), field(ValueFormat.I32, NODEID, Aggregate.TREND),
        field(ValueFormat.I32, bytes([5, 1, 0]) + NODEID, 42),
    ],
)  # fmt: skip
def test_windows_that_cannot_be_are_refused(mote: Mote, bad: dict[str, Any]) -> None:
    assert mote.install(program([bad]), 5) == REFUSED
    assert mote.refusal() == (5, RefusalReason.MALFORMED, 0)
