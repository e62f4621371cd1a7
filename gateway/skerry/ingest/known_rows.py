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

    def remember(self, records: Records, streams: Mapping[int, Stream]) -> None:
        """All at once: rows that are stored, which nothing takes back; states, and rows of streams that nobody knows, are left out."""
        found: list[tuple[int, Key, int]] = []
        for number, stream, places in _of_rows(records, streams):
            mine = records[places]
            epochs = mine["epoch"].astype(np.int64)
            columns = np.array([mine["node"], epochs // EPOCHS, *_numbered(mine, stream)], np.int64)
            order = np.lexsort(columns[::-1])
            ordered = columns[:, order]
            begins = np.ones(len(order), np.bool_)
            begins[1:] = np.any(ordered[:, 1:] != ordered[:, :-1], axis=0)
            at = np.flatnonzero(begins)
            bits = np.bitwise_or.reduceat(np.uint64(1) << (epochs % EPOCHS).astype(np.uint64)[order], at)
            # The sort leaves rows of a run in their order.
            first = places[order[at]].tolist()
            runs = zip(first, ordered[:, at].T.tolist(), bits.tolist(), strict=True)
            found += [(place, (number, *run), bit) for place, run, bit in runs]
        for _, run, bit in sorted(found):
            self._runs[run] = self._runs.get(run, 0) | bit
        while len(self._runs) > self._most:
            self._runs.popitem(last=False)

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
    for number, stream, places in _of_rows(records, streams):
        mine = records[places]
        columns = [mine["node"], mine["epoch"], *_numbered(mine, stream)]
        told = zip(*(column.tolist() for column in columns), strict=True)
        for place, key in zip(places.tolist(), told, strict=True):
            found[place] = (number, *key)
    return found


def _of_rows(records: Records, streams: Mapping[int, Stream]) -> Iterator[tuple[int, Stream, Int64]]:
    """Streams of which some are rows, not states, and where these are."""
    for number, places in by_stream(records):
        stream = streams.get(number)
        if stream is not None and not stream.mote_query.aggregate:
            yield number, stream, places


def _numbered(records: Records, stream: Stream) -> list[np.ndarray]:
    """Of a join, the stored rows that its rows were made of."""
    return list(records["value"].T[: stream.mote_query.numbered])
