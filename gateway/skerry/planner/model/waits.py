"""For how long an epoch is waited for, and for whom it is told in the log.

An epoch of an aggregate is told when it is complete, or when its time is over: so long after its beginning as WAIT says, or
:data:`WAIT_MS`. What is complete is told for everybody, by one record; whoever waits less long than others is told by a record of his own.
"""

from __future__ import annotations

#: From an epoch's beginning, in ms: rows climb to the root in the second after it, and what fails is sent again in the nine after that.
WAIT_MS = 12_000
#: … and so much longer for each hop from the ninth on, in ms.
HOP_MS, HOPS = 1_000, 8
#: So much later than rows are there an epoch is told that has waited for as long as is usual, at most, in ms.
LATE_MS = 5_000
#: The longest that WAIT may say.
WAIT_MAXIMUM_MS = 600_000

#: A record's ``wait``: it is for everybody who has not been told the epoch before; for those without WAIT; for others :func:`told_by`.
EVERYBODY, BY_DEFAULT = 0, 1


def told_by(wait_ms: int | None) -> int:
    """By which records a query is told that has this WAIT, besides those for everybody."""
    return BY_DEFAULT if wait_ms is None else wait_ms + 2


def late_ms(wait_ms: int | None) -> int:
    """How much longer than for its rows it takes, at most, until the last epoch of a FOR is told."""
    return max(0, (WAIT_MS if wait_ms is None else wait_ms) - WAIT_MS + LATE_MS)


def grace_ms(period_ms: int, wait_ms: int | None) -> int:
    """How far behind the end of a window the row is sampled that brings it, at least."""
    return max(period_ms, WAIT_MS if wait_ms is None else wait_ms)


def behind_ms(period_ms: int, wait_ms: int | None) -> int:
    """For how long a query's rows go on behind its FOR, so that its last window has such a row: whole periods."""
    return (-(-grace_ms(period_ms, wait_ms) // period_ms) + 1) * period_ms


def default_ms(hops: int) -> int:
    """How long is usual in a network whose farthest mote is so many hops away."""
    return WAIT_MS + max(0, hops - HOPS) * HOP_MS
