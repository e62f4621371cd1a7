"""Which rows a join with windows of rows still needs: those that a row to come may meet, and those that such rows have met already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from skerry.joins.progress import Bool, Int64
from skerry.joins.rows import Rows
from skerry.joins.windows import Window


def retained(
    aliases: Sequence[Rows], windows: Mapping[tuple[int, int], Window], progress_us: int, *, complete: bool
) -> list[Rows]:
    """By alias the rows that stay. ``complete``: each pair of aliases has a window, so that a row must meet a row to come itself."""
    keep = [np.zeros(len(rows), np.bool_) for rows in aliases]
    for pair, window in windows.items():
        for alias in pair:
            keep[alias] |= _may_meet(aliases[alias], window, progress_us)
    changed = not complete
    while changed:
        changed = False
        for pair, window in windows.items():
            for one, other in (pair, pair[::-1]):
                found = keep[one] | _meets(aliases[one], aliases[other].take(keep[other]), window)
                changed |= bool((found != keep[one]).any())
                keep[one] = found
    return [rows.take(mask) for rows, mask in zip(aliases, keep, strict=True)]


def _may_meet(rows: Rows, window: Window, progress_us: int) -> Bool:
    """Whether a row with a time of progress or later may be in the window."""
    found: Bool = np.ones(len(rows), np.bool_)
    if window.us is not None:
        found &= rows.time + window.us >= progress_us
    if window.rows is not None and len(rows):
        found &= _whole(rows, f"displaced by {window.rows}") == 1 << 62
    return found


def _meets(rows: Rows, others: Rows, window: Window) -> Bool:
    """Whether one of the others is in the window, as far as its time or its rows tell."""
    if not len(others) or not len(rows):
        return np.zeros(len(rows), np.bool_)
    if window.us is not None:
        times = np.sort(others.time)
        return np.searchsorted(times, rows.time - window.us) < np.searchsorted(
            times, rows.time + window.us, "right"
        )
    own, end = _whole(rows, "order"), _whole(rows, f"displaced by {window.rows}")
    order, displacing = _whole(others, "order"), _whole(others, f"displaced by {window.rows}")
    ordered = np.sort(order)
    later: Bool = np.searchsorted(ordered, own) < np.searchsorted(ordered, end)
    # Of the others that are earlier, how many are not displaced yet.
    standing = np.searchsorted(ordered, own, "right") - np.searchsorted(np.sort(displacing), own, "right")
    return later | (standing > 0)


def _whole(rows: Rows, name: str) -> Int64:
    found: Int64 = rows.fields[name].to_numpy(zero_copy_only=False)
    return found
