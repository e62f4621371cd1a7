"""When rows change from one mote query to the one that follows it. All times are network times in ms.

Old and new query sample at multiples of their own periods. With a cut at S, users get samples before S
from the old and those from S on from the new one; ``Feed.before_ms`` then tells whether the first new
sample still belongs to a user's epoch that the old query has served. So there are no duplicates at any S.
There is no gap when no user's epoch falls between the last old and the first new sample.
"""

from __future__ import annotations

from collections.abc import Iterable

from skerry.planner.model.periods import ceiling, last_sample_before


def choose_cut(earliest_ms: int, old_period_ms: int, new_period_ms: int, periods_ms: Iterable[int]) -> int:
    """The first good cut at or after ``earliest_ms``, for users of these periods (each at least the old).

    The next sample of the new query always is one; when that is far away (a slow query follows a fast
    one), a cut right away mostly is one too.
    """
    periods = frozenset(periods_ms)
    certain = ceiling(earliest_ms, new_period_ms)
    for cut in (earliest_ms, ceiling(earliest_ms, old_period_ms) + 1):
        last, first = last_sample_before(cut, old_period_ms), ceiling(cut, new_period_ms)
        if cut < certain and all(first // period - last // period <= 1 for period in periods):
            return cut
    return certain
