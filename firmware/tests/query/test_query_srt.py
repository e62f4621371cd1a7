"""Semantic routing trees: what a mote tells of the values below it, what it passes over, and whom it would choose."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.tests.query.mote import COMPLETE, KNOWN, PASSED, REFUSED, Mote, field, program
from skerry_protocol import beacons, bytecode, programs
from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate, Policy, RefusalReason

ME = 7
NONE = (255, 0)
ROW = field(ValueFormat.U8, bytecode.instruction(Op.ATTR, 2))
WINDOWS = 4
ENTRY = beacons.SrtEntry.sizeof()
Interval = tuple[int, int]
Entry = tuple[Interval, Interval]


def srt(*attributes: str, number: int = 1, policy: Policy = Policy.LINK, step: int = 1) -> bytes:
    axes = [{"attribute": BY_NAME[name].number, "low": 0, "step": step} for name in attributes]
    code = programs.Srt.build({"srt": number, "policy": policy, "axes": axes})
    return program([ROW, {"format": 0, "aggregate": Aggregate.SRT, "code": code}], where=bytecode.constant(0))


def routed(low: int, high: int, low2: int = 255, high2: int = 0, number: int = 1) -> bytes:
    code = bytes([number, low, high, low2, high2])
    return program([ROW, {"format": 0, "aggregate": Aggregate.ROUTE, "code": code}])


class Tree:
    """The mote's side of net/: children that tell, and what it tells itself."""

    def __init__(self, mote: Mote) -> None:
        self.mote, self.c = mote, mote._c
        for name in ("app_srt_heard", "app_srt_refresh", "app_wants", "app_spreads"):
            getattr(self.c, name).restype = ctypes.c_bool
        for name in ("app_srt_write", "app_routes", "app_known"):
            getattr(self.c, name).restype = ctypes.c_uint8
        self.c.app_srt_distance.restype = ctypes.c_uint16
        self.c.neighbours_clear()

    def child(self, place: int) -> None:
        """A child in the next free place of the table, which must be this one."""
        self.c.neighbour_child(ctypes.c_uint16(100 + place), ctypes.c_uint8(2), ctypes.c_uint8(255))

    def hear(self, place: int, sets: Entry, value: tuple[int, int] = (0, 0), cells: int = 0) -> bool:
        entry = bytes([1, *sets[0], *sets[1], *value]) + cells.to_bytes(4, "little")
        length = ctypes.c_uint8(ENTRY)
        return bool(self.c.app_srt_heard(ctypes.c_uint8(place), entry, length, ctypes.c_bool(True)))

    def refresh(self, window: bool = False) -> bool:
        return bool(self.c.app_srt_refresh(ctypes.c_bool(window)))

    def told(self) -> Entry:
        entry = self.written()
        return (entry[1], entry[2]), (entry[3], entry[4])

    def cells(self) -> int:
        return int.from_bytes(self.written()[7:], "little")

    def written(self) -> bytes:
        buffer = (ctypes.c_uint8 * 64)()
        assert self.c.app_srt_write(buffer) == ENTRY
        return bytes(buffer[:ENTRY])

    def known(self) -> list[int]:
        buffer = (ctypes.c_uint8 * 8)()
        return list(buffer[: self.c.app_known(buffer)])

    def routes(self) -> list[tuple[int, ...]]:
        buffer = (ctypes.c_uint8 * 64)()
        size = self.c.app_routes(buffer)
        return [tuple(buffer[at : at + 6]) for at in range(0, size, 6)]

    def distance(self, place: int, parent: bool = False) -> int:
        return int(self.c.app_srt_distance(ctypes.c_uint8(place), ctypes.c_bool(parent)))


@pytest.fixture
def tree(mote: Mote) -> Tree:
    """A mote, number 7, with a tree over nodeid."""
    mote.synchronise(1000)
    found = Tree(mote)
    assert mote.install(srt("nodeid"), 1) == COMPLETE
    return found


def covers(entry: Entry, code: int) -> bool:
    return any(low <= code <= high for low, high in entry)


def test_a_leaf_tells_its_own_value(tree: Tree) -> None:
    assert tree.told() == ((0, 255), NONE)
    assert not tree.refresh()
    assert tree.told() == ((ME, ME), NONE)


def test_two_intervals_keep_the_widest_gap(tree: Tree) -> None:
    for place, code in enumerate((9, 100, 90, 12)):
        tree.child(place)
        assert tree.hear(place, ((code, code), NONE))
    tree.refresh()
    assert sorted(tree.told()) == [(7, 12), (90, 100)]


@given(st.lists(st.lists(st.integers(0, 255), min_size=2, max_size=4), max_size=20))
def test_nothing_below_is_left_out(query_library: Path, codes: list[list[int]]) -> None:
    """Whatever children tell: all of it is covered, by at most two intervals."""
    mote = Mote(query_library)
    mote.synchronise(1000)
    tree = Tree(mote)
    mote.install(srt("nodeid"), 1)
    for place, values in enumerate(codes):
        tree.child(place)
        a, b = sorted(values[:2])
        rest = sorted(values[2:])
        second = (rest[0], rest[-1]) if rest else NONE
        assert tree.hear(place, ((a, b), second))
    tree.refresh()
    assert covers(tree.told(), ME)
    for values in codes:
        a, b = sorted(values[:2])
        assert all(covers(tree.told(), code) for code in range(a, b + 1))
        assert all(covers(tree.told(), code) for code in values[2:])


def test_more_is_told_at_once_and_less_later(tree: Tree) -> None:
    tree.child(0)
    tree.hear(0, ((20, 20), NONE))
    tree.refresh()
    assert tree.hear(0, ((30, 30), NONE))
    assert tree.refresh()
    assert covers(tree.told(), 30)
    for _ in range(WINDOWS):
        assert not tree.refresh(window=True)
        assert covers(tree.told(), 20)
    tree.refresh(window=True)
    assert tree.told() == ((ME, ME), (30, 30))


def test_cells_are_told_as_they_are_now(tree: Tree) -> None:
    """Eight codes each; what a child has no more is left out at once, though the intervals still hold it."""
    tree.child(0)
    tree.hear(0, ((20, 20), (255, 255)), cells=1 << 31 | 1 << 2)
    tree.refresh()
    assert tree.cells() == 1 << 31 | 1 << 2 | 1 << ME // 8
    tree.hear(0, ((20, 20), NONE), cells=1 << 2)
    tree.refresh()
    assert tree.cells() == 1 << 2 | 1 << ME // 8
    assert covers(tree.told(), 255)


def test_children_without_a_place_may_have_any_value(tree: Tree) -> None:
    for place in range(23):
        tree.child(place)
        assert tree.hear(place, ((20, 20), NONE))
    tree.refresh()
    assert tree.told() != ((0, 255), NONE)
    tree.child(23)
    tree.hear(23, ((20, 20), NONE))
    tree.child(24)
    assert tree.refresh()
    assert tree.told() == ((0, 255), NONE)


def test_a_child_that_has_not_told_may_have_any_value(mote: Mote) -> None:
    tree = Tree(mote)
    mote.synchronise(1000)
    tree.child(0)
    mote.install(srt("nodeid"), 1)
    tree.refresh()
    assert tree.told() == ((0, 255), NONE)


@pytest.mark.parametrize(
    "entry",
    [
        b"\x01\x05\x04\xff\x00" + bytes(6),
        b"\x01\x01\x02\x09\x03" + bytes(6),
        b"\x00\x01\x02\xff\x00" + bytes(6),
        b"\x01\x01\x02",
    ],
)
def test_what_cannot_be_changes_nothing(tree: Tree, entry: bytes) -> None:
    tree.child(0)
    tree.hear(0, ((20, 20), NONE))
    tree.refresh()
    assert not tree.c.app_srt_heard(ctypes.c_uint8(0), entry, ctypes.c_uint8(len(entry)), ctypes.c_bool(True))
    assert not tree.refresh()
    assert sorted(tree.told()) == [(ME, ME), (20, 20)]


def test_a_query_out_of_range_is_passed_over(tree: Tree) -> None:
    assert tree.mote.install(routed(8, 9), 2, version=2) == PASSED
    assert tree.mote.queries() == [1]
    assert tree.known() == [1, 2]
    assert tree.routes() == [(2, 1, 8, 9, 255, 0)]
    assert tree.mote.install(routed(8, 9), 2, version=2) == KNOWN
    assert not tree.c.app_spreads(ctypes.c_uint8(2))
    tree.mote.stop(2)
    assert tree.known() == [1]


def test_a_query_in_range_is_held_and_goes_on_only_for_children(tree: Tree) -> None:
    assert tree.mote.install(routed(3, 9), 2, version=2) == COMPLETE
    assert not tree.c.app_spreads(ctypes.c_uint8(2))
    tree.child(0)
    tree.hear(0, ((9, 9), NONE))
    assert tree.c.app_spreads(ctypes.c_uint8(2))


def test_two_intervals_of_a_query(tree: Tree) -> None:
    assert tree.mote.install(routed(1, 2, 7, 7), 2, version=2) == COMPLETE
    assert tree.mote.install(routed(1, 2, 8, 9), 3, version=3) == PASSED


def test_what_is_passed_over_is_wanted_when_a_child_comes(tree: Tree) -> None:
    tree.mote.install(routed(8, 9), 2, version=2)
    assert not tree.c.app_wants()
    tree.child(0)
    tree.hear(0, ((9, 9), NONE))
    assert tree.c.app_wants()
    assert tree.routes() == [(2, 0, 8, 9, 255, 0)]
    assert tree.mote.install(routed(8, 9), 2, version=2) == COMPLETE
    assert tree.mote.queries() == [1, 2]
    assert not tree.c.app_wants()


def test_what_applies_no_more_is_dropped_after_some_windows(tree: Tree) -> None:
    tree.child(0)
    tree.hear(0, ((9, 9), NONE))
    tree.mote.install(routed(8, 9), 2, version=2)
    tree.hear(0, ((10, 10), NONE))
    for _ in range(WINDOWS):
        tree.c.app_window()
        assert tree.mote.queries() == [1, 2]
    tree.c.app_window()
    assert tree.mote.queries() == [1]
    assert tree.known() == [1, 2]


def test_without_the_tree_all_is_held(mote: Mote) -> None:
    assert mote.install(routed(8, 9), 2) == COMPLETE


def test_a_forwarding_mote_does_not_sample(tree: Tree) -> None:
    tree.child(0)
    tree.hear(0, ((9, 9), NONE))
    tree.mote.install(routed(8, 9), 2, version=2)
    tree.mote.run(5)
    assert tree.mote.rows == 0
    tree.mote.install(routed(7, 9), 3, version=3)
    tree.mote.run(5)
    assert tree.mote.rows > 0


def test_a_box(mote: Mote) -> None:
    """The mote stands at -12.50 m, 3.00 m: codes 0 and 3."""
    tree = Tree(mote)
    mote.synchronise(1000)
    assert mote.install(srt("xpos", "ypos", step=100), 1) == COMPLETE
    tree.refresh()
    assert tree.told() == ((0, 0), (3, 3))
    assert tree.cells() == 1 << 0 | 1 << 16
    tree.child(0)
    tree.hear(0, ((10, 20), (5, 6)))
    tree.refresh()
    assert tree.told() == ((0, 20), (3, 6))
    assert mote.install(routed(15, 255, 6, 9), 2, version=2) == COMPLETE
    assert mote.install(routed(15, 255, 0, 3), 3, version=3) == PASSED


def test_one_tree_is_what_the_board_holds(tree: Tree) -> None:
    assert tree.mote.install(srt("nodeid", number=2), 2, version=2) == REFUSED
    assert tree.mote.refusal() == (2, RefusalReason.TREES, 0)


def test_closest(boot: Callable[[int], Mote]) -> None:
    mote = boot(0)
    mote.synchronise(1000)
    tree = Tree(mote)
    assert mote.install(srt("nodeid", policy=Policy.CLOSEST), 1) == COMPLETE
    tree.refresh()
    for place, value in enumerate((90, 100)):
        tree.child(place)
        tree.hear(place, ((value, value), NONE), value=(value, 0))
    assert (tree.distance(0), tree.distance(1)) == (83, 93)


def test_clustered(boot: Callable[[int], Mote]) -> None:
    """Of two neighbours one has the nearer value, the other values around the mote's own below it."""
    mote = boot(0)
    mote.synchronise(1000)
    tree = Tree(mote)
    assert mote.install(srt("nodeid", policy=Policy.CLUSTERED), 1) == COMPLETE
    for place in (0, 1):
        tree.child(place)
    tree.refresh()
    tree.hear(0, ((90, 90), NONE), value=(90, 0), cells=1 << 90 // 8)
    tree.hear(1, ((0, 10), (100, 100)), value=(100, 0), cells=1 << 100 // 8 | 1 << ME // 8)
    # Cells 0 to 4 are near the mote's own, and would be added below the first only.
    assert tree.distance(0) == 6 * 5 + 83 // 2
    assert tree.distance(1) == 93 // 2
    # What the parent tells has this mote's values in it: that of no other child is sure to be there.
    assert tree.distance(1, parent=True) == 6 * 5 + 93 // 2
    tree.hear(1, ((0, 10), (100, 100)), value=(100, 0), cells=1 << 100 // 8 | 1 << ME // 8 | 1 << 2)
    assert tree.distance(1, parent=True) == 93 // 2


def test_malformed_trees_are_refused(mote: Mote) -> None:
    good = programs.Srt.build({"srt": 1, "policy": 0, "axes": [{"attribute": 0, "low": 0, "step": 1}]})
    bad = [
        b"",
        good[:-1],
        b"\0" + good[1:],
        good[:-4] + bytes(4),
        good[:2],
        good + good[2:] * 2,
        good[:2] + b"\x1f" + good[3:],
    ]
    for number, code in enumerate(bad, 1):
        text = program([ROW, {"format": 0, "aggregate": Aggregate.SRT, "code": code}])
        assert mote.install(text, number) == REFUSED, code.hex()
    for number, code in enumerate([b"", b"\1\0\0\0", b"\0\0\0\0\0", b"\1\0\0\0\0\0"], 1):
        text = program([ROW, {"format": 0, "aggregate": Aggregate.ROUTE, "code": code}])
        assert mote.install(text, number) == REFUSED, code.hex()


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (Aggregate.FROM, programs.From.build({"point": 1, "match": 0})),
        (
            Aggregate.STORE,
            programs.Store.build({"point": 1, "rows": 4, "seconds": 0, "flags": 1, "block": 0, "blocks": 0}),
        ),
    ],
    ids=["a join", "a point"],
)
def test_a_tree_is_nothing_else(mote: Mote, kind: Aggregate, code: bytes) -> None:
    """Both keep their state in one place: a join went through the four billion rows that it took a tree's values for."""
    tree = programs.Srt.build({"srt": 1, "policy": 0, "axes": [{"attribute": 0, "low": 0, "step": 1}]})
    clauses = [
        {"format": 0, "aggregate": Aggregate.SRT, "code": tree},
        {"format": 0, "aggregate": kind, "code": code},
    ]
    assert mote.install(program([ROW, clauses[1]]), 2) == COMPLETE
    assert mote.install(program([ROW, *clauses]), 3) == REFUSED
