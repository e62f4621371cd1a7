"""Where in a run the rows lie that may meet others: the three algorithms.

* HW keeps rows by key and time: a binary search finds a key, another one the window among its rows.
* MW keeps rows by time: two binary searches find the window, in which all rows are looked at.
* NLW keeps rows as they came, and looks at all of them.

Those who look are many at a time, as arrays; :func:`met` makes pairs of them and of the rows found.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skerry.joins.pool import Run
from skerry.joins.progress import Int64
from skerry.joins.rows import Algorithm
from skerry.joins.windows import UNBOUNDED

#: Rows of a key, or of a run for each that looks, up to which a search of its own for each is faster than one over all rows.
_FEW = 4

#: So many pairs are made at a time, unless one row alone has more.
PAIRS = 1 << 21


def ranges(algorithm: Algorithm, run: Run, keys: Int64, lows: Int64, highs: Int64) -> tuple[Int64, Int64]:
    """For each of those who look the first offset in the run, and the one behind the last, at which rows may be in its window:
    from ``lows`` to ``highs``, both included."""
    if algorithm == "HW":
        return _by_key(run, keys, lows, highs)
    if algorithm == "MW":
        times = run.rows.time
        return np.searchsorted(times, lows, "left"), np.searchsorted(times, highs, "right")
    # Only the run as a whole can be passed over.
    meeting = (lows <= run.last_us) & (highs >= run.first_us)
    return np.zeros(len(lows), np.int64), np.where(meeting, len(run.rows), 0)


def _by_key(run: Run, keys: Int64, lows: Int64, highs: Int64) -> tuple[Int64, Int64]:
    own, times = run.rows.key, run.rows.time
    starts = np.searchsorted(own, keys, "left")
    found = np.flatnonzero(own[np.minimum(starts, len(own) - 1)] == keys)
    first, keys = starts[found], keys[found]
    last = np.searchsorted(own, keys, "right")
    most = int((last - first).max(initial=0))
    if most > _FEW and len(found) * _FEW > len(own):
        first, last = _by_code(run, first, lows[found], highs[found])
    else:
        first, last = (
            bounded(times, first, last, lows[found], after=False),
            bounded(times, first, last, highs[found], after=True),
        )
    begin, end = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    begin[found], end[found] = first, np.maximum(first, last)
    return begin, end


def _by_code(run: Run, first: Int64, lows: Int64, highs: Int64) -> tuple[Int64, Int64]:
    """The same by one binary search over all rows: key and time are one number, as keys are counted from 0 on and times from the run's
    first one."""
    own, times = run.rows.key, run.rows.time - run.first_us
    span = run.last_us - run.first_us + 2
    ranks = np.cumsum(np.diff(own, prepend=own[0]) != 0)
    if (int(ranks[-1]) + 1) * span >= UNBOUNDED:
        ends = np.searchsorted(own, own[first], "right")
        return bounded(run.rows.time, first, ends, lows, after=False), bounded(
            run.rows.time, first, ends, highs, after=True
        )
    codes, bases = ranks * span + times, ranks[first] * span
    low = np.clip(lows - run.first_us, 0, span - 1)
    high = np.clip(highs - run.first_us + 1, 0, span - 1)
    return np.searchsorted(codes, bases + low, "left"), np.searchsorted(codes, bases + high, "left")


def bounded(times: Int64, first: Int64, last: Int64, bounds: Int64, *, after: bool) -> Int64:
    """A binary search for each of some bounds, in a part of ``times`` of its own: the first place from ``first`` on, before ``last``,
    with a time of at least the bound (``after``: above it); ``last``, where there is none."""
    low, high = first.copy(), last.copy()
    while len(left := np.flatnonzero(low < high)):
        middle = (low[left] + high[left]) >> 1
        found = times[middle]
        below = found <= bounds[left] if after else found < bounds[left]
        low[left[below]] = middle[below] + 1
        high[left[~below]] = middle[~below]
    return low


def met(begin: Int64, end: Int64) -> Iterator[tuple[Int64, Int64]]:
    """Pairs of who looks, by its place, and an offset in its range; :data:`PAIRS` at a time."""
    counts = end - begin
    total = np.cumsum(counts)
    start = 0
    while start < len(counts):
        before = int(total[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(total, before + PAIRS, "right")))
        own = counts[start:stop]
        size = int(total[stop - 1]) - before
        if size:
            who = np.repeat(np.arange(start, stop), own)
            shift = begin[start:stop] - (total[start:stop] - own - before)
            yield who, np.arange(size) + np.repeat(shift, own)
        start = stop
