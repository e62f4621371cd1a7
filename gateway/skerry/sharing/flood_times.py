"""How long queries are on their way to the motes: their floods go some hops on in each control window (firmware/net/schedule).

Measured on emulated motes in lines, strips and grids of up to 21 hops, whose links lose none, one or two frames of ten.
"""

from __future__ import annotations

from collections.abc import Iterable

from skerry.planner.features.queueing import sent_each
from skerry.planner.model.periods import ceiling
from skerry.planner.model.plans import MoteQuery
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import FRAGMENT_MAXIMUM

#: A network is slow once its session is so old, in s, and while motes hold no query whose rows may go more often than this, in ms.
SLOW_FROM_S, SLOW_PERIOD_MS = 150, 10_000
#: From one control window to the next in ms, and in a slow network.
WINDOW_MS, SLOW_WINDOW_MS = 4_000, 16_000
#: What is sent in this time before a window, of this machine's, may miss it: line and gateway take theirs.
GATEWAY_DELAY_MS = 1_000
#: Twice the hops that a flood goes on in a window, by the number of its frames; more frames take as long as the last.
_HALF_HOPS = (8, 3, 2)
#: As many frames as those that go on by a hop in a window, as do questions for what was not heard.
ASKED_FOR = len(_HALF_HOPS)


def keeps_awake(query: MoteQuery) -> bool:
    """Whether all motes that there are listen often while they hold it."""
    return _goes_often(query) and not _has_route(query)


def keeps_some_awake(query: MoteQuery) -> bool:
    """Whether those that hold it listen often, while others do not: they flood what is news among themselves, and all others have to ask
    for it, hop by hop."""
    return _goes_often(query) and _has_route(query)


def _goes_often(query: MoteQuery) -> bool:
    return query.period_ms * max(1, sent_each(query)) < SLOW_PERIOD_MS


def _has_route(query: MoteQuery) -> bool:
    return any(clause.kind is Aggregate.ROUTE for clause in query.clauses)


def frames_of(programs: Iterable[bytes]) -> int:
    """Frames of the floods of several programs."""
    return sum(-(-len(program) // FRAGMENT_MAXIMUM) for program in programs)


def control_windows(hops: int, frames: int) -> int:
    """Control windows until a flood of so many frames has come so far."""
    return 1 + 2 * hops // _HALF_HOPS[min(max(frames, 1), len(_HALF_HOPS)) - 1]


def spread_ms(sent_ms: int, count: int, *, slow: bool) -> int:
    """Network time at which what the root has by then has been through so many control windows."""
    every = SLOW_WINDOW_MS if slow else WINDOW_MS
    return ceiling(sent_ms, every) + (count - 1) * every
