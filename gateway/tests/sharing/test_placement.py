"""Who shares a mote query with whom: whenever some division of what is asked fits the motes, one is found."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations

import pytest

from skerry.planner.model.columns import IN_EVERY_ROW
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.mote_memory import MEMORY_BYTES, bytes_taken
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry.sharing.groups import Group, query_of, view_of
from skerry.sharing.needs import Kind, Need, need_of
from skerry.sharing.placement import Placement
from skerry.sql.errors import QueryError
from skerry_protocol.limits import FIELDS_MAXIMUM, PROGRAM_MAXIMUM, QUERIES_MAXIMUM

ATTRIBUTES = (
    *(
        "parent",
        "level",
        "light",
        "temp",
        "humidity",
        "voltage",
        "accel_x",
        "accel_y",
        "xpos",
        "ypos",
        "free_ram",
        "queue_length",
    ),
    *(
        "room",
        "floor",
        "group",
        "link",
        "neighbours",
        "radio_duty",
        "resets",
        "uptime",
        "dropped",
        "energy",
        "contention",
    ),
)


def plan(text: str) -> QueryPlan:
    result = plan_query(text)
    assert isinstance(result, QueryPlan)
    return result


# --- an oracle that knows nothing of the search ---


def _partitions(needs: list[Need]) -> Iterator[list[list[Need]]]:
    """All ways to divide a list into parts."""
    if not needs:
        yield []
        return
    first, *rest = needs
    for smaller in _partitions(rest):
        for place, part in enumerate(smaller):
            yield [*smaller[:place], [first, *part], *smaller[place + 1 :]]
        yield [[first], *smaller]


def _accepted(query: MoteQuery) -> bool:
    try:
        program = encode(query, 0)
    except ValueError:  # a stack that is too deep, a length beyond a byte
        return False
    return len(query.columns) <= FIELDS_MAXIMUM and len(program) <= PROGRAM_MAXIMUM


@cache
def _least_bytes(part: frozenset[Need]) -> int | None:
    """What the part takes of a mote at least, in one query; None: none serves it."""
    found = []
    plans = [need.plan for need in part]
    if len(part) == 1 and _accepted(merge(plans)):
        found.append(bytes_taken(merge(plans)))
    if not any(p.clauses or p.budget for p in plans):
        attributes = frozenset[int]().union(*(p.attributes for p in plans)) - IN_EVERY_ROW
        if len(attributes) <= FIELDS_MAXIMUM:
            found.append(14 + 5 * max(1, len(attributes)))
        if all(p.aggregate for p in plans) and len({p.groups for p in plans}) == 1:
            query = merge([need.shared for need in part])
            if _accepted(query):
                found.append(bytes_taken(query))
    return min(found, default=None)


def divisible(needs: list[Need], slots: int, room: int, there: Sequence[Group], free: int) -> bool:
    """Whether any division fits, to which motes can change over from what is there with so many slots free."""
    for parts in _partitions(needs):
        if len(parts) <= slots:
            takes = [_least_bytes(frozenset(part)) for part in parts]
            fits = None not in takes and sum(size or 0 for size in takes) <= room
            if fits and _reachable(parts, there, free):
                return True
    return False


def _reachable(parts: list[list[Need]], there: Sequence[Group], free: int) -> bool:
    """Whether the queries can begin in some order, each while all that its users read runs."""
    begin = [{*part} for part in parts if not any(_runs(part, group) for group in there)]
    if free >= len(begin):
        return True
    for order in permutations(begin):
        slots, changed = free, list[Need]()
        for part in order:
            if slots < 1:
                break
            changed += part
            slots = free - 1 - order.index(part) + sum({*group.needs} <= {*changed} for group in there)
        else:
            return True
    return False


def _runs(part: list[Need], group: Group) -> bool:
    """Whether the group's query serves a part as it is."""
    if not group.needs.keys() & {*part} or not all(
        need.rows() or group.kind is not Kind.ROWS for need in part
    ):
        return False
    if group.kind is Kind.AGGREGATES and not all(need.aggregates() for need in part):
        return False
    alike = len({need.plan.groups for need in part}) == 1
    return alike and query_of(group.kind, part) == group.query()


def may_be_served(placement: Placement, newcomer: Need) -> bool:
    """Whether motes have room for a newcomer beside what is asked, windows that run on motes staying there."""
    groups = list(placement.groups().values())
    pinned = [group for group in groups if group.kind is Kind.OWN]
    lasting = [group for group in pinned if not all(need.is_once for need in group.needs)]
    taken = sum(bytes_taken(group.query()) for group in lasting)
    movable = [need for group in groups if group not in pinned for need in group.needs]
    if any(group.share == newcomer.share for group in pinned if newcomer.kind is Kind.OWN):
        return True
    for needs, own in ((([*movable, newcomer]), 0), (movable, 1)):
        if own and newcomer.kind is not Kind.OWN:
            continue
        if not own and newcomer.kind is Kind.OWN and newcomer.rows() is None:
            continue
        size = bytes_taken(merge([newcomer.plan])) * own
        if own and newcomer.is_once:
            # Beside what lasts, once others that are ONCE are over; it needs no room for changes.
            lasts = [group for group in groups if group not in pinned or group in lasting]
            held = sum(bytes_taken(group.query()) for group in lasts) + size + PROGRAM_MAXIMUM * bool(movable)
            if len(lasts) < QUERIES_MAXIMUM and held <= MEMORY_BYTES:
                return True
        kept = int(bool(needs))
        slots = QUERIES_MAXIMUM - kept - len(lasting) - own
        there = [group for group in groups if group not in pinned]
        free = QUERIES_MAXIMUM - len(lasting) - len(there)
        if slots >= 0 and divisible(
            needs, slots, MEMORY_BYTES - taken - size - PROGRAM_MAXIMUM * kept, there, free
        ):
            return True
    return False


# --- what is drawn ---

_AGGREGATES = [
    "AVG({})",
    "SUM({})",
    "MIN({})",
    "COUNT({})",
    "TOP(5, {})",
    "MEDIAN({})",
    "COUNT(DISTINCT {})",
    "VARIANCE({})",
]


def drawn(rng: random.Random) -> QueryPlan:
    """A query that a mote could run alone."""
    while True:
        try:
            return plan(_text(rng))
        except QueryError as error:
            if "cells" not in error.message:
                raise


def _text(rng: random.Random) -> str:
    """Of few periods, conditions and groups, so that some could share."""
    period = rng.choice(["5 s", "10 s", "20 s", "7 s"])
    where = rng.choice(["", "", "WHERE light > 100 ", "WHERE temp < 30 AND level > 1 ", "WHERE room = 3 "])
    kind = rng.random()
    if kind < 0.4:
        names = rng.sample(ATTRIBUTES, rng.choice([1, 2, 5, 7, 9]))
        return f"SELECT {', '.join(names)} FROM sensors {where}SAMPLE PERIOD {period}"
    if kind < 0.75:
        wanted = [
            rng.choice(_AGGREGATES).format(rng.choice(ATTRIBUTES[2:8])) for _ in range(rng.choice([1, 2, 4]))
        ]
        group = rng.choice(["", "", "GROUP BY room ", "GROUP BY level, floor "])
        return f"SELECT {', '.join(dict.fromkeys(wanted))} FROM sensors {where}{group}SAMPLE PERIOD {period}"
    if kind < 0.85:
        what = rng.choice(
            [f"WINAVG({rng.choice([4, 60])}, temp)", "DELTA(1, light)", "TREND(64, light), TREND(64, temp)"]
        )
        return f"SELECT {what} FROM sensors {where}SAMPLE PERIOD {period}"
    if kind < 0.9:
        return f"SELECT {rng.choice(['temp', 'AVG(temp)', ', '.join(rng.sample(ATTRIBUTES, 6))])} FROM sensors {where}ONCE"
    if kind < 0.95:
        return f"ON EVENT e{rng.randrange(9)}: SELECT light FROM sensors SAMPLE PERIOD {period} FOR 1 min"
    return f"SELECT light FROM sensors SAMPLE PERIOD {period} QUEUE WINAVG SIZE {rng.randrange(1, 9)}"


def _fill(placement: Placement, rng: random.Random) -> None:
    """What leaves little room for what is asked."""
    for number in range(rng.choice([0, 3, 5, 6, 7])):
        placement.add(
            f"own{number}", plan(f"ON EVENT x{number}: SELECT light FROM sensors SAMPLE PERIOD 2 s FOR 1 min")
        )


def check(placement: Placement) -> None:
    """Each user is served by one query, and motes have room for all."""
    groups = list(placement.groups().values())
    lasting = [group for group in groups if not all(need.is_once for need in group.needs)]
    movable = [group for group in groups if group.kind is not Kind.OWN]
    assert len(lasting) + bool(movable) <= QUERIES_MAXIMUM
    assert sum(bytes_taken(g.query()) for g in lasting) + PROGRAM_MAXIMUM * bool(movable) <= MEMORY_BYTES
    for group in groups:
        query = group.query()
        assert _accepted(query)
        for user, need in group.users.items():
            assert placement.group_of(user) is group
            view = view_of(need.plan, query)
            if need.plan.aggregate and not need.plan.clauses:
                assert query.aggregate or need.plan.attributes - IN_EVERY_ROW <= _columns(query)
                assert query.period_ms <= need.shared.period_ms
                assert query.aggregate or query.where is None
            elif not need.plan.temporal and not need.plan.clauses and not need.is_once:
                assert need.plan.attributes - IN_EVERY_ROW <= _columns(query)
                assert view is None


def _columns(query: MoteQuery) -> frozenset[int]:
    return frozenset(
        c.expr.operand for c in query.columns if c.expr is not None and c.expr.operand is not None
    )


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(start, start + 100) for start in range(0, 400, 100)], ids=str)
def test_who_finds_a_place_where_any_division_has_one(seeds: Sequence[int]) -> None:
    refused = 0
    for seed in seeds:
        rng = random.Random(seed)
        placement = Placement()
        _fill(placement, rng)
        for number in range(8):
            asked = drawn(rng)
            before = placement.rows(), {user: placement.place(user) for user in placement.users()}
            newcomer = need_of(asked, f"u{number}")
            served = may_be_served(placement, newcomer)
            if served:
                placement.add(f"u{number}", newcomer.plan)
            else:
                with pytest.raises(QueryError):
                    placement.add(f"u{number}", newcomer.plan)
                assert (placement.rows(), {u: placement.place(u) for u in placement.users()}) == before
                refused += 1
            check(placement)
            if rng.random() < 0.2:
                placement.remove(rng.choice(list(placement.users())))
                while placement.improve():
                    check(placement)
    assert refused > 10
