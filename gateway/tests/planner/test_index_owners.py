"""Owners of an index that die, come back, join and move: tuples go to who is there, and whoever may have some is asked."""

from __future__ import annotations

import random

import pytest

from skerry.index.code import NULL, motes_code
from skerry.index.placement import Position, field_of
from skerry.index.questions import coarse
from skerry.network.index_asks import IndexAsk
from skerry.planner.features.index_owners import amended
from skerry.planner.features.indexing import Axis, Index, IndexPart

KEEP_S = 600
AXES = Axis(4, 0, 2000), Axis(5, 1000, 3500)
FOUR: dict[int, Position] = {1: (0, 0), 2: (90, 0), 3: (0, 90), 4: (90, 90)}


def index_of(parts: list[dict[int, Position]]) -> Index:
    columns = [(0, 1)] if len(parts) == 1 else [(0,), (1,)]
    stored = tuple(IndexPart(own, places) for own, places in zip(columns, parts, strict=True))
    return Index("climate", 7, AXES, 30_000, KEEP_S * 1000, stored)


def everything(_: Index) -> bool:
    return True


def owner(part: IndexPart, code: int) -> int:
    """To whom motes send a tuple: the one that stores whose code is nearest."""
    field = field_of([*part.owners.values(), *part.away.values()])
    known = {node: motes_code().zone_code(field, *place) for node, place in part.storing.items()}
    return min(known, key=lambda node: known[node] ^ code)


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_whoever_may_have_a_tuple_is_asked_whatever_owners_do(seed: int, follow: bool) -> None:
    """``follow``: now and then tuples of some motes that are there follow their zones."""
    rng = random.Random(seed)

    def place() -> Position:
        return rng.randrange(-50, 200), rng.randrange(0, 150)

    motes = {node: place() for node in range(1, 9)}
    known = rng.sample(sorted(motes), 6)
    split = [known] if seed % 2 else [known[:3], known[3:]]
    index = index_of([{node: motes[node] for node in part} for part in split])
    there, now = {node: motes[node] for node in known}, 0.0
    stored: list[tuple[int, int, list[int], float]] = []
    room = rng.randrange(7, 16)

    def fits(one: Index) -> bool:
        return sum(len(part.told) for part in one.parts) <= room

    changes = 0
    for _ in range(80):
        now += rng.choice([5, 40, 250])
        what, node = rng.choice(["dies", "comes", "moves", "stays"]), rng.choice(sorted(motes))
        if what == "dies":
            there.pop(node, None)
        elif what == "comes":
            there[node] = motes[node]
        elif what == "moves" and node in there:
            there[node] = motes[node] = place()
        before = index
        known = dict(enumerate(index.parts))
        givers = {node for node in there if follow and rng.random() < 0.8}
        stored = [
            (number, owner(known[number], motes_code().code(points)), points, moment)
            if by in givers and owner(known[number], motes_code().code(points)) in there
            else (number, by, points, moment)
            for number, by, points, moment in stored
        ]
        followed = {
            node
            for node in givers
            if all(
                by != node or by == owner(known[number], motes_code().code(points))
                for number, by, points, _ in stored
            )
        }
        index = amended(index, there, now, fits, followed)
        changes += index.revision != before.revision
        assert (index.encode() == before.encode()) == (index.revision == before.revision)
        assert Index.from_list(index.to_list()) == index
        # Whose place one has left to another has no part in it before the next look.
        later = amended(index, there, now, fits)
        assert amended(later, there, now, fits).revision == later.revision
        for number, part in enumerate(index.parts):
            assert not set(part.owners) & set(part.away)
            for _ in range(6):
                points = [rng.randrange(NULL + 1) for _ in part.columns]
                by = owner(part, motes_code().code(points))
                wrong = {one: at for one, at in part.storing.items() if there.get(one) != at}
                if wrong:
                    # Nobody is there to lend the zones to, or there is no room to tell of it.
                    told = sum(len(part.told) for part in index.parts)
                    assert wrong == part.storing or told + len(wrong) > room
                    continue
                stored.append((number, by, points, now))
        box = [
            tuple(sorted(rng.choice([(0, NULL), (rng.randrange(NULL), rng.randrange(NULL))]))) for _ in AXES
        ]
        ask = IndexAsk(index, coarse(box))
        for number, part in enumerate(index.parts):
            asked = {one for step in ask._steps if step.number == number for one in step.motes}
            for of, by, points, moment in stored:
                within = all(
                    box[column][0] <= point <= box[column][1]
                    for column, point in zip(part.columns, points, strict=False)
                )
                if of == number and within and moment > now - KEEP_S:
                    assert by in asked
    assert changes > 3


def test_a_zone_is_lent_and_comes_back() -> None:
    index = index_of([FOUR])
    without = {node: place for node, place in FOUR.items() if node != 4}
    lent = amended(index, without, 10.0, everything)
    [part] = lent.parts
    assert (lent.revision, part.owners, part.away, part.added) == (1, without, {4: (90, 90)}, {})
    # What was in its zone goes to the one below it: the second halving's other half.
    assert owner(part, 0xFFFFFFFF) == 2
    assert amended(lent, without, 20.0, everything) == lent
    back = amended(lent, FOUR, 30.0, everything)
    [part] = back.parts
    assert (back.revision, part.away, part.added) == (2, {4: (90, 90)}, {4: (90, 90)})
    assert owner(part, 0xFFFFFFFF) == 4
    corner = coarse([(0x9000, 0xF000), (0x9000, 0xF000)])
    assert sorted(IndexAsk(back, corner).parts) == [2, 4]
    assert sorted(IndexAsk(index, corner).parts) == [4]
    # When all that was stored meanwhile is as old as nobody keeps it, all is as it was.
    assert amended(back, FOUR, 30.0 + KEEP_S, everything) == back
    settled = amended(back, FOUR, 31.0 + KEEP_S, everything)
    [part] = settled.parts
    assert (settled.revision, part.owners, part.away, part.added) == (3, FOUR, {}, {})


def test_one_that_joins_splits_a_zone_and_one_that_moves_takes_another() -> None:
    index = index_of([FOUR])
    joined = amended(index, {**FOUR, 9: (70, 70)}, 10.0, everything)
    [part] = joined.parts
    assert part.added == {9: (70, 70)}
    # Both stand in one quarter, whose zones are told apart farther down.
    assert {owner(part, code << 26) for code in range(64)} == {1, 2, 3, 4, 9}
    moved = amended(joined, {**FOUR, 9: (20, 70)}, 20.0, everything)
    [part] = moved.parts
    assert part.added == {9: (20, 70)}
    assert part.holding == [1, 2, 3, 4, 9]
    assert amended(moved, {**FOUR, 9: (90, 90)}, 30.0, everything).parts[0].storing.get(9) is None


def test_where_nobody_is_left_zones_are_nobody_elses() -> None:
    index = index_of([{1: (0, 0)}, {2: (90, 0)}])
    assert amended(index, {1: (0, 0)}, 10.0, everything) == index


def test_there_is_room_for_so_many_at_most() -> None:
    index = index_of([FOUR])

    def four(one: Index) -> bool:
        return len(one.parts[0].told) <= 4

    there = {**FOUR, 9: (70, 70)}
    assert amended(index, there, 10.0, four) == index
    lent = amended(index, {1: (0, 0)}, 20.0, four)
    back = amended(lent, there, 30.0, four)
    assert back.parts[0].storing == {1: (0, 0)}
    assert back.parts[0].holding == [1, 2, 3, 4]


def test_where_tuples_have_followed_owners_alone_are_asked() -> None:
    there = {**FOUR, 9: (70, 70)}
    joined = amended(index_of([FOUR]), there, 10.0, everything)
    corner = coarse([(0, 0x1000), (0, 0x1000)])
    assert sorted(IndexAsk(joined, corner).parts) == [1, 9]
    # One of them still has tuples that are not its own.
    assert amended(joined, there, 20.0, everything, set(FOUR)) == joined
    settled = amended(joined, there, 20.0, everything, set(there))
    [part] = settled.parts
    assert (settled.revision, part.owners, part.added, part.since) == (2, there, {}, {})
    assert sorted(IndexAsk(settled, corner).parts) == [1]

    # What one that is away may have is unknown, until it is back.
    without = {node: place for node, place in there.items() if node != 4}
    lent = amended(settled, without, 30.0, everything, set(there))
    assert amended(lent, without, 40.0, everything, set(there)) == lent
    back = amended(lent, there, 50.0, everything, set(there))
    assert back.parts[0].added == {4: (90, 90)}
    settled = amended(back, there, 60.0, everything, set(there))
    assert settled.parts[0].owners == there
    assert settled.parts[0].since == {}

    # One that moves within the field.
    moved = amended(settled, {**there, 9: (20, 70)}, 70.0, everything)
    again = amended(moved, {**there, 9: (20, 70)}, 80.0, everything, set(there))
    assert again.parts[0].owners == {**FOUR, 9: (20, 70)}
    assert again.parts[0].since == {}
    # The field stays what it was: where one stood at its edge is told for as long as tuples are kept.
    inward = {**there, 9: (20, 70), 4: (60, 60), 2: (60, 0)}
    changed = amended(again, inward, 90.0, everything)
    assert amended(changed, inward, 95.0, everything, set(there)).parts[0].away
