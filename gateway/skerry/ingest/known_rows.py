"""Which rows of motes have come, so that one that comes again is known.

A mote's rows of :data:`EPOCHS` epochs in a row are remembered together, a bit for each: so it is minutes of a gateway with many busy
roots, and hours of others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from skerry.storage.log.record import Int64, Records
from skerry.streams.stream import Stream

#: Consecutive epochs of a mote that are remembered together.
EPOCHS = 64
#: Of so many such runs of epochs is known which have come.
RUNS = 200_000
#: What a row is told by: its stream, its mote, its epoch and, of a join, which has several in an epoch, the stored rows that it was made
#: from.
Key = tuple[int, ...]


class KnownRows:
    """The rows that have come, the latest of them; ``runs``: of how many runs of epochs."""

    def __init__(self, runs: int = RUNS) -> None:
        self._most = runs
        self._runs: OrderedDict[Key, int] = OrderedDict()
        self._added: list[tuple[Key, int]] = []

    def begin(self) -> Callable[[], None]:
        """Returns what takes back all that is added from now on until this is called again."""
        added = self._added = []

        def undo() -> None:
            for run, bit in added:
                left = self._runs.get(run, 0) & ~bit
                if left:
                    self._runs[run] = left
                else:
                    self._runs.pop(run, None)

        return undo

    def add(self, key: Key) -> bool:
        """Whether the row is new; it is known from now on."""
        stream, node, epoch, *others = key
        run, bit = (stream, node, epoch // EPOCHS, *others), 1 << epoch % EPOCHS
        there = self._runs.get(run, 0)
        if there & bit:
            return False
        self._runs[run] = there | bit
        self._added.append((run, bit))
        if not there and len(self._runs) > self._most:
            self._runs.popitem(last=False)
        return True

    def __contains__(self, key: Key) -> bool:
        stream, node, epoch, *others = key
        return bool(self._runs.get((stream, node, epoch // EPOCHS, *others), 0) >> epoch % EPOCHS & 1)


def by_stream(records: Records) -> Iterator[tuple[int, Int64]]:
    """Numbers of the streams of records, and where the records of each are."""
    for number in np.unique(records["stream"]).tolist():
        yield number, np.flatnonzero(records["stream"] == number)


def keys(records: Records, streams: Mapping[int, Stream]) -> list[Key | None]:
    """What tells each record from other rows; None: it is of a state, or of a stream that nobody knows."""
    found: list[Key | None] = [None] * len(records)
    for number, places in by_stream(records):
        stream = streams.get(number)
        if stream is None or stream.mote_query.aggregate:
            continue
        mine = records[places]
        columns = [mine["node"], mine["epoch"], *mine["value"].T[: stream.mote_query.numbered]]
        told = zip(*(column.tolist() for column in columns), strict=True)
        for place, key in zip(places.tolist(), told, strict=True):
            found[place] = (number, *key)
    return found
