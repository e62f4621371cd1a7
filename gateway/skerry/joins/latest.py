"""ASOF: for each of some who look the latest row of a stream within its window of which conditions are true."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skerry.joins.matching import ranges
from skerry.joins.pool import Run, View
from skerry.joins.progress import NEVER, Bool, Int64
from skerry.joins.rows import Algorithm

#: Which of those who look, by their places, a run's rows at these offsets are met by.
Meets = Callable[[Int64, Run, Int64], Bool]


def latest(algorithm: Algorithm, others: View, keys: Int64, lows: Int64, highs: Int64, meets: Meets) -> Int64:
    """By who looks, with a key and a period of its own, the place of the row; -1: there is none. Rows are kept in an order of time, so that
    it is looked for from the latest one back, as far as conditions say no."""
    found = np.full(len(keys), -1)
    best_time, best_number = np.full(len(keys), NEVER), np.full(len(keys), -1)
    if not len(keys):
        return found
    runs = [*zip(map(int, others.bases), others.old, strict=False)]
    if len(others.fresh):
        runs.append((others.base, Run.of(-1, -1, others.fresh)))
    for base, run in runs:
        if run.first_us > highs.max() or run.last_us < lows.min():
            continue
        begin, end = ranges(algorithm, run, keys, lows, highs)
        left = np.flatnonzero(begin < end)
        at = end - 1
        while len(left):
            offsets = at[left]
            time, number = run.rows.time[offsets], run.rows.number[offsets]
            better = (time > best_time[left]) | ((time == best_time[left]) & (number > best_number[left]))
            left, offsets = left[better], offsets[better]
            true = meets(left, run, offsets)
            who = left[true]
            found[who] = base + at[who]
            best_time[who], best_number[who] = run.rows.time[at[who]], run.rows.number[at[who]]
            left = left[~true]
            at[left] -= 1
            left = left[at[left] >= begin[left]]
    return found
