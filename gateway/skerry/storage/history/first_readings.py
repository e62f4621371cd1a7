"""A mote's reading for an epoch, in the past: its first in that epoch, of those that there are.

Motes sample by the schedule of their query, and rows of the past were sampled by that of others, which came and went: whether a row
stands where a schedule would have had it says nothing of whether the epoch has another.
"""

from __future__ import annotations

import numpy as np

from skerry.storage.history.layout import Int64
from skerry.storage.history.reader import Reader, Samples
from skerry_protocol.attributes import BY_NAME

#: Rows of the log that are looked at at a time.
_PIECE_ROWS = 65_536
#: What tells an epoch of a mote from others.
_KEYS = 3


def epochs_of(samples: Samples, period_ms: int) -> Int64:
    """For each row its session, mote and epoch: an array of 3 x rows."""
    nodes, _ = samples.rows.column(BY_NAME["nodeid"].name)
    return np.stack([samples.sessions, nodes, samples.rows.sample_ms // period_ms])


def first_in_epochs(reader: Reader, end: int, period_ms: int) -> Int64:
    """Numbers, ascending, of the log's rows before ``end`` that were sampled first in an epoch of a mote. It takes 40 bytes for each."""
    found = [np.empty((_KEYS + 2, 0), np.int64)]
    for start in range(reader.first(), end, _PIECE_ROWS):
        samples = reader.read(start, min(start + _PIECE_ROWS, end))
        piece = [epochs_of(samples, period_ms), samples.rows.sample_ms, samples.numbers]
        found.append(_firsts(np.vstack(piece)))
    return np.sort(_firsts(np.concatenate(found, axis=1))[-1])


def _firsts(rows: Int64) -> Int64:
    """Of columns of keys, sample time and number, those with the earliest sample, and of these the lowest number, of each key."""
    rows = rows[:, np.lexsort(rows[::-1])]
    new = np.ones(rows.shape[1], np.bool_)
    new[1:] = (rows[:_KEYS, 1:] != rows[:_KEYS, :-1]).any(axis=0)
    return rows[:, new]
