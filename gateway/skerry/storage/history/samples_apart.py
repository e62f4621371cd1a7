"""How far apart the samples of each mote lie in a file: what is no farther than that from another is a reading of an epoch of its own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skerry.storage.history.layout import Int64

#: The sessions of a file, and network times in ms of the first and the last sample of each.
Sessions = tuple[tuple[int, int, int], ...]
_KEYS = ("session", "nodeid", "network_ms")
#: Where no mote has two samples.
_ALWAYS = 2**53


class SamplesApart:
    """Of rows that come in pieces. It takes 24 bytes for each."""

    def __init__(self) -> None:
        self._pieces: list[Int64] = []

    def add(self, table: pa.Table) -> None:
        """More rows of the same file."""
        if all(name in table.column_names for name in _KEYS):
            columns = [table.column(name).fill_null(0).to_numpy() for name in _KEYS]
            self._pieces.append(np.array(columns, np.int64))

    def found(self) -> tuple[int, Sessions]:
        """The least time between two samples of a mote, in ms, and the sessions; 0 and none where rows are no samples."""
        if not self._pieces:
            return 0, ()
        rows = np.concatenate(self._pieces, axis=1)
        sessions, motes, times = rows[:, np.lexsort(rows[::-1])]
        same = (np.diff(sessions) == 0) & (np.diff(motes) == 0)
        apart = int(np.diff(times)[same].min()) if same.any() else _ALWAYS
        begins = np.flatnonzero(np.diff(sessions, prepend=-1))
        least, most = np.minimum.reduceat(times, begins), np.maximum.reduceat(times, begins)
        spans = zip(sessions[begins].tolist(), least.tolist(), most.tolist(), strict=True)
        return apart, tuple(spans)
