"""How many motes an epoch is to be complete of.

A partial state tells how many motes it is of, and not which. So an epoch is complete when as many are in it as are known to have been
there lately: all that have reported or sent rows in the last twenty minutes, until the query has run for a while; then as many as were in
any of its epochs of :data:`LATELY_MS`, or in the last four of them where these are longer. A mote that is lost is waited for no
longer than that, and one that is back counts again with its first epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from skerry.planner.model.plans import MoteQuery
from skerry_protocol.codes import Aggregate, EventFlag

#: For so long, in ms, a mote is waited for that is in no epoch; for so many epochs at least.
LATELY_MS, EPOCHS = 120_000, 4
#: Epochs of so much of that time are enough to go by.
_ENOUGH = 0.75


class Counting(Enum):
    """What the number of motes in an epoch says."""

    #: All motes of a network are in each epoch of each such query.
    ALL = "all"
    #: Those are that the query concerns: other queries say nothing of it.
    OWN = "own"
    #: There may be fewer, as motes withhold states that change nothing, or take part by turns: all that are known make it complete.
    KNOWN = "known"
    #: Nothing: states may come behind those that count their motes.
    NOTHING = "nothing"


def counting_of(query: MoteQuery) -> Counting:
    """By what a mote query says of its motes."""
    kinds = {column.aggregate for column in query.columns} | {clause.kind for clause in query.clauses}
    beside = any(
        clause.kind is Aggregate.ON_EVENT and clause.values[1] & EventFlag.EACH for clause in query.clauses
    )
    if Aggregate.REPRESENTATIVE in kinds or (
        Aggregate.GROUP in kinds and (Aggregate.FROM in kinds or beside)
    ):
        return Counting.NOTHING
    if query.snoop or query.budget is not None or Aggregate.ON_EVENT in kinds:
        return Counting.KNOWN
    if kinds & {Aggregate.ROUTE, Aggregate.STOP_ON}:
        return Counting.OWN
    return Counting.ALL


def lately_ms(period_ms: int) -> int:
    """For how long, in ms, a mote is waited for that is in no epoch of this period."""
    return max(LATELY_MS, EPOCHS * period_ms)


def expected(known: int | None, begin_ms: int, period_ms: int, past: Iterable[tuple[int, int]]) -> int | None:
    """Of how many motes an epoch is complete that begins at a network time. ``known``: motes heard of lately; ``past``: when epochs
    before it began, and how many motes they had. None: that cannot be told."""
    lately = lately_ms(period_ms)
    recent = [(begin, motes) for begin, motes in past if begin_ms - lately <= begin < begin_ms]
    most = max((motes for _, motes in recent), default=0)
    oldest = min((begin for begin, _ in recent), default=begin_ms)
    if most and begin_ms - oldest >= _ENOUGH * lately:
        return most
    return None if known is None else max(known, most)
