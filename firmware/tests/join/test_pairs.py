"""Rows that meet at a mote are those that DuckDB joins, whatever the order in which they come."""

from __future__ import annotations

import ctypes
import json
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.tests.query.host import FIRMWARE, TRAPS, build
from skerry.planner.model import pair_groups

S, T = 1, 2
PUT, DOUBLED, LATE, STRANGE, FULL = range(5)
OVER, MORE, NO_ROOM = range(3)
MOTES = range(1, 5)
VECTORS = json.loads((FIRMWARE.parent / "protocol" / "vectors" / "pair_groups.json").read_text())
ROOM = 200


class Row(ctypes.Structure):
    """struct pairs_row."""

    _pack_ = 1
    _fields_ = (("epoch", ctypes.c_uint32), ("mote", ctypes.c_uint8), ("passed", ctypes.c_uint8))


class Window(ctypes.Structure):
    """struct pairs_window."""

    _fields_ = (("length", ctypes.c_uint16), ("rows", ctypes.c_uint8))


class _At(ctypes.Structure):
    """struct pairs_at."""

    _pack_ = 1
    _fields_ = (
        ("joined", ctypes.c_uint32),
        ("under_way", ctypes.c_uint8),
        ("s", ctypes.c_uint8),
        ("t", ctypes.c_uint8),
    )


class _Pairs(ctypes.Structure):
    _fields_ = (
        ("rows", ctypes.POINTER(Row)), ("groups", ctypes.POINTER(ctypes.c_uint8)), ("window", Window), ("at", ctypes.POINTER(_At)),
        ("rows_room", ctypes.c_uint8), ("groups_length", ctypes.c_uint8),
    )  # fmt: skip


_MET = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_uint8, ctypes.c_uint8, ctypes.c_void_p)


@pytest.fixture(scope="module")
def code() -> Any:
    """The firmware's own, compiled for this machine; undefined behaviour ends the process."""
    return ctypes.CDLL(str(build("libskerry_join.so", (FIRMWARE / "join" / "pairs.c",), TRAPS)))


class Place:
    """A mote that joins. ``met``: (s, its epoch, t, its epoch), as often as they met; ``left``: for how many more there is room."""

    def __init__(
        self,
        code: Any,
        pairs: list[tuple[int, int]] | bytes,
        window: Window,
        begin: int = 0,
        room: int = ROOM,
    ) -> None:
        self._code, self.met = code, Counter[tuple[int, int, int, int]]()
        groups = (
            pairs if isinstance(pairs, bytes) else pair_groups.build(pairs, range(pair_groups.PAIRS_MOTES))
        )
        self._rows, self._groups = (Row * room)(), (ctypes.c_uint8 * len(groups))(*groups)
        self._at = _At(begin)
        self._pairs = _Pairs(self._rows, self._groups, window, ctypes.pointer(self._at), room, len(groups))
        self.left = 2**32
        self._told = _MET(self._meet)

    def _meet(self, s: int, t: int, _: int | None) -> bool:
        one, other = self._rows[s], self._rows[t]
        if self.left == 0:
            return False
        self.left -= 1
        self.met[one.mote, one.epoch, other.mote, other.epoch] += 1
        return True

    def put(self, mote: int, epoch: int, roles: int) -> int:
        row, place = Row(epoch % 2**32, mote, roles), ctypes.c_uint8(room := 255)
        outcome = int(self._code.pairs_put(ctypes.byref(self._pairs), ctypes.byref(row), ctypes.byref(place)))
        if outcome == PUT:
            there = self._rows[place.value]
            assert place.value != room
            assert (there.epoch, there.mote) == (row.epoch, mote)
        return outcome

    def join(self, until: int) -> None:
        """As far as there is room."""
        while self.step(until) == MORE:
            pass

    def step(self, until: int) -> int:
        return int(
            self._code.pairs_join(ctypes.byref(self._pairs), ctypes.c_uint32(until % 2**32), self._told, None)
        )

    @property
    def kept(self) -> int:
        """Rows that it holds."""
        return sum(row.passed != 0 for row in self._rows)


@dataclass(frozen=True)
class Sample:
    """A row of a mote."""

    mote: int
    epoch: int
    roles: int


database = duckdb.connect(config={"threads": 1})


def by_duckdb(
    samples: list[Sample], pairs: list[tuple[int, int]], rows: int, length: int
) -> set[tuple[int, ...]]:
    """``rows`` 0: the window is of ``length``."""
    columns = {
        name: pa.array([getattr(one, name) for one in samples], pa.int64())
        for name in ("mote", "epoch", "roles")
    }
    database.register("samples", pa.table(columns))
    database.register("pairs", pa.table({"s": [s for s, _ in pairs], "t": [t for _, t in pairs]}))
    inside = (
        "(SELECT count(*) FROM {0} x WHERE x.mote = {0}.mote AND x.epoch > {0}.epoch AND x.epoch <= {1}.epoch) < "
        + str(rows)
        if rows
        else "{1}.epoch - {0}.epoch <= " + str(length)
    )
    return set(
        database.execute(
            "WITH s AS (SELECT * FROM samples WHERE roles & 1 <> 0), t AS (SELECT * FROM samples WHERE roles & 2 <> 0) "
            "SELECT DISTINCT s.mote, s.epoch, t.mote, t.epoch FROM s, t, pairs WHERE pairs.s = s.mote AND pairs.t = t.mote "
            f"AND ((s.epoch <= t.epoch AND {inside.format('s', 't')}) OR (t.epoch <= s.epoch AND {inside.format('t', 's')}))"
        ).fetchall()
    )


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from(MOTES), st.sampled_from(MOTES)), min_size=1, max_size=6, unique=True),
    st.dictionaries(st.tuples(st.sampled_from(MOTES), st.integers(0, 15)), st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=40),
    st.one_of(st.tuples(st.integers(1, 4), st.just(0)), st.tuples(st.just(0), st.integers(0, 60))),
    st.sampled_from([0, 2**31 - 100, 2**32 - 100]),
    st.integers(0, 40),
    st.one_of(st.none(), st.integers(0, 3)),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_rows_that_meet_are_duckdbs(
    code: Any,
    pairs: list[tuple[int, int]],
    drawn: dict[tuple[int, int], tuple[int, int]],
    window: tuple[int, int],
    begin: int,
    late: int,
    room: int | None,
    draw: random.Random,
) -> None:
    """Each comes up to ``late`` after its time, some twice, and waits so long. ``room``: for so many that meet there is room between two
    that come, and joining goes on later."""
    rows, length = window
    samples = [
        Sample(mote, begin + epoch * 10 + shift, roles) for (mote, epoch), (shift, roles) in drawn.items()
    ]
    coming = [
        (one.epoch + draw.randint(0, late), draw.random(), one)
        for one in samples
        for _ in range(draw.choice((1, 1, 2)))
    ]
    passed = numbered(code, {(one.mote, one.epoch): one.roles for one in samples})
    place = Place(code, pairs, Window(length, rows), begin)
    for now, _, one in sorted(coming, key=lambda each: each[:2]):
        place.left = 2**32 if room is None else room
        place.join(now - late)
        expected = (STRANGE,) if not _taken(one, pairs) else (PUT, DOUBLED, LATE)
        assert place.put(one.mote, one.epoch, passed[one.mote, one.epoch]) in expected
    place.left = 2**32
    place.join(begin + 1000)
    wanted = by_duckdb(samples, pairs, rows, length)
    assert place.met == Counter((s, a % 2**32, t, b % 2**32) for s, a, t, b in wanted), "each once"
    assert place.kept <= 2 * rows * len(MOTES), "what is in no window is dropped"


def _taken(one: Sample, pairs: list[tuple[int, int]]) -> bool:
    return any((one.roles & S and s == one.mote) or (one.roles & T and t == one.mote) for s, t in pairs)


def test_what_cannot_be_joined_is_said(code: Any) -> None:
    place = Place(code, [(1, 2)], Window(0, 1), room=2)
    assert place.put(3, 5, S | T) == STRANGE
    assert place.put(2, 5, S) == STRANGE
    assert place.put(1, 5, S | T) == PUT
    assert place.put(1, 5, S | T) == DOUBLED
    assert place.put(2, 5, T) == PUT
    assert place.put(2, 6, T) == FULL
    place.join(6)
    assert place.met == {(1, 5, 2, 5): 1}
    assert place.put(2, 4, T) == LATE
    assert place.put(2, 6, T) == FULL, "both are in windows"


@settings(max_examples=100)
@given(
    st.dictionaries(st.tuples(st.sampled_from((1, 2)), st.integers(0, 20)), st.integers(1, 3), max_size=30),
    st.integers(1, 7),
    st.randoms(use_true_random=False),
)
def test_rows_that_never_come_count_by_their_numbers(
    code: Any, drawn: dict[tuple[int, int], int], rows: int, draw: random.Random
) -> None:
    """None meets whose window may not reach so far: what has not come shows by the next row that has. Only behind a mote's last row nobody
    knows of it."""
    passed = numbered(code, drawn)
    assert all(passed[one] & (S | T) == roles for one, roles in drawn.items())
    lost = set(draw.sample(sorted(drawn), min(len(drawn), draw.randint(0, 6))))
    place = Place(code, [(1, 2)], Window(0, rows))
    for mote, epoch in sorted(drawn.keys() - lost, key=lambda one: (one[1] + draw.randint(0, 5), one)):
        assert place.put(mote, epoch, passed[mote, epoch]) == (
            PUT if drawn[mote, epoch] & (S if mote == 1 else T) else STRANGE
        )
    place.join(100)
    samples = [Sample(*one, roles) for one, roles in drawn.items()]
    wanted = {one for one in by_duckdb(samples, [(1, 2)], rows, 0) if not {one[:2], one[2:]} & lost}
    for s, a, t, b in wanted - place.met.keys():
        mote, role, at = (s, S, b) if a <= b else (t, T, a)
        newest, following = _around(drawn, lost, (mote, role, at))
        assert following is not None
        assert any(m == mote and newest < e < following and drawn[m, e] & role for m, e in lost)
    assert not _wrong(place.met.keys() - wanted, drawn, lost)


def test_a_window_ends_before_what_lacks_where_that_cannot_come_any_more(code: Any) -> None:
    """Of mote 1's three rows the second one is lost."""
    passed = numbered(code, {(1, 5): S, (1, 8): S, (1, 10): S, (2, 7): T, (2, 9): T})
    for turns, met in (((100,), set()), ((8, 100), {(1, 5, 2, 7)})):
        place = Place(code, [(1, 2)], Window(0, 1))
        for mote, epoch in ((1, 5), (1, 10), (2, 7), (2, 9)):
            assert place.put(mote, epoch, passed[mote, epoch]) == PUT
        for until in turns:
            place.join(until)
        assert set(place.met) == {*met, (1, 10, 2, 9)}


@settings(max_examples=200)
@given(
    st.dictionaries(st.tuples(st.sampled_from((1, 2)), st.integers(0, 20)), st.integers(1, 3), min_size=4, max_size=40),
    st.integers(1, 7),
    st.integers(1, 20),
    st.integers(0, 12),
)  # fmt: skip
def test_no_window_reaches_too_far_back_over_a_start(
    code: Any, drawn: dict[tuple[int, int], int], rows: int, start: int, gone: int
) -> None:
    """What mote 1 had in the last epochs before it starts again is lost, however many rows that are; its numbers begin anew."""
    passed = numbered(code, drawn, start)
    lost = {(mote, epoch) for mote, epoch in drawn if mote == 1 and start - gone <= epoch < start}
    place = Place(code, [(1, 2), (2, 1)], Window(0, rows))
    for mote, epoch in sorted(drawn.keys() - lost, key=lambda one: one[1]):
        assert place.put(mote, epoch, passed[mote, epoch]) == PUT
    place.join(100)
    samples = [Sample(*one, roles) for one, roles in drawn.items()]
    wanted = {one for one in by_duckdb(samples, [(1, 2), (2, 1)], rows, 0) if not {one[:2], one[2:]} & lost}
    assert not _wrong(place.met.keys() - wanted, drawn, lost, start)
    for s, a, t, b in wanted - place.met.keys():
        mote, since, at = (s, a, b) if a <= b else (t, b, a)
        assert mote == 1, "nothing lacks but windows over the start"
        assert since < start <= at
        assert at - since >= rows


def numbered(
    code: Any, drawn: dict[tuple[int, int], int], start: int | None = None
) -> dict[tuple[int, int], int]:
    """What motes say of rows, by mote and epoch; ``start``: when mote 1 starts again."""
    following: dict[tuple[int, bool], ctypes.c_uint8] = {}
    return {
        (mote, epoch): int(
            code.pairs_count(
                ctypes.byref(
                    following.setdefault(
                        (mote, mote == 1 and start is not None and epoch >= start), ctypes.c_uint8()
                    )
                ),
                roles,
            )
            & 0xFF
        )
        for (mote, epoch), roles in sorted(drawn.items())
    }


def _wrong(
    more: set[tuple[int, int, int, int]],
    drawn: dict[tuple[int, int], int],
    lost: set[tuple[int, int]],
    start: int = 1000,
) -> list[tuple[int, int, int, int]]:
    """Of answers that are not DuckDB's all but those up to whose later row something was lost behind the last one that has come before
    mote 1 starts again, or at all."""
    found = []
    for s, a, t, b in more:
        mote, role, at = (s, S, b) if a <= b else (t, T, a)
        newest, following = _around(drawn, lost, (mote, role, at))
        behind = any(m == mote and drawn[m, e] & role and newest < e <= at for m, e in lost)
        last = following is None or (mote == 1 and newest < start <= following)
        if not (last and behind):
            found.append((s, a, t, b))
    return found


def _around(
    drawn: dict[tuple[int, int], int], lost: set[tuple[int, int]], where: tuple[int, int, int]
) -> tuple[int, int | None]:
    """Of a mote's rows in a role that have come the newest up to an epoch, and the first behind it."""
    mote, role, at = where
    known = [e for (m, e), roles in drawn.items() if m == mote and roles & role and (m, e) not in lost]
    return max(e for e in known if e <= at), min((e for e in known if e > at), default=None)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_pairs_are_those_of_golden_bytes(code: Any, vector: dict[str, Any]) -> None:
    place = Place(code, bytes.fromhex(vector["hex"]), Window(0, 1))
    for mote in range(pair_groups.PAIRS_MOTES):
        of = {(S, T)[role] for pair in vector["meaning"] for role in (0, 1) if pair[role] == mote}
        assert place.put(mote, 5, S | T) == (PUT if of else STRANGE)
    place.join(6)
    assert place.met == Counter((s, 5, t, 5) for s, t in vector["meaning"])


@given(st.binary(min_size=1, max_size=20))
def test_pairs_are_those_of_any_bytes(code: Any, told: bytes) -> None:
    place = Place(code, told, Window(0, 1))
    for mote in {byte % pair_groups.PAIRS_MOTES for byte in told}:
        place.put(mote, 5, S | T)
    place.join(6)
    assert place.met == Counter(
        (s, 5, t, 5) for s, t in pair_groups.parse(told, range(pair_groups.PAIRS_MOTES))
    )


def test_numbers_go_round(code: Any) -> None:
    following = ctypes.c_uint8()
    passed = [int(code.pairs_count(ctypes.byref(following), roles) & 0xFF) for roles in (S, *[S | T] * 8, T)]
    assert [int(code.pairs_number(one, S)) & 0xFF for one in passed[:9]] == [0, 1, 2, 3, 4, 5, 6, 7, 1]
    assert [int(code.pairs_number(one, T)) & 0xFF for one in passed[1:]] == [0, 1, 2, 3, 4, 5, 6, 7, 1]
    assert [one & (S | T) for one in passed] == [S, *[S | T] * 8, T]
