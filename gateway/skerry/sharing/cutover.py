"""When rows change from one mote query to the one that follows it. All times are network times in ms.

Old and new query sample at multiples of their own periods. With a cut at S, users get samples before S
from the old and those from S on from the new one; ``Feed.before_ms`` then tells whether the first new
sample still belongs to a user's epoch that the old query has served. So there are no duplicates at any S.
There is no gap when no user's epoch falls between the last old and the first new sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from skerry.planner.model.periods import ceiling, last_sample_before


class Reading(NamedTuple):
    """Periods of a user's epochs, and of the samples that he has before and behind the cut: each at most his own. ``since_ms``: he reads
    the old query from then on, and ``before_ms`` is his last sample of the one before that; None: there was none."""

    period_ms: int
    old_ms: int
    new_ms: int
    since_ms: int = 0
    before_ms: int | None = None

    def last_ms(self, cut_ms: int) -> int:
        """His last sample before a cut: where one cut-over soon follows another, the query between them may have none for him."""
        last = last_sample_before(cut_ms, self.old_ms)
        return last if self.before_ms is None or last >= self.since_ms else self.before_ms

    def loses_none(self, cut_ms: int) -> bool:
        """Whether none of his epochs falls between the last old sample and the first new one."""
        first = ceiling(cut_ms, self.new_ms)
        return first // self.period_ms - self.last_ms(cut_ms) // self.period_ms <= 1


def choose_cut(earliest_ms: int, readings: Iterable[Reading]) -> int:
    """The first good cut at or after ``earliest_ms`` for users who change over together, where there is one soon.

    For one of them alone the next new sample always is one; when that is far away (a slow query follows a fast one), a cut right away
    mostly is one too. Who loses an epoch with a cut that others have takes the next that is good for him.
    """
    known = frozenset(readings)
    certain = ceiling(earliest_ms, min((reading.new_ms for reading in known), default=1))
    near = {ceiling(earliest_ms, reading.old_ms) + 1 for reading in known}
    for cut in sorted({earliest_ms, certain, *near}):
        if cut <= certain and all(reading.loses_none(cut) for reading in known):
            return cut
    return certain
