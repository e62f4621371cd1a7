"""What executors give back of a batch: the rows that anybody has, once, and whose they are.

A row is in :class:`Matched` once, whoever wants it; of each entry of the users' index (:mod:`skerry.execution.users_index`) it says which
places of ``places`` are its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from skerry.execution.joined import Joined
from skerry.execution.partial_panes import PartialPanes
from skerry.execution.range_index import Int64, Places
from skerry.expressions.evaluate import Mask

#: An entry's rows: ``places[first:last]``, in any order.
HIT = np.dtype([("entry", "<i8"), ("first", "<i4"), ("last", "<i4")])
#: Column of the rows' numbers among those that :mod:`skerry.execution.stream_batches` makes.
ROW = "row"


@dataclass(frozen=True, slots=True)
class Matched:
    """Rows of one stream in a part of a batch. ``numbers``: theirs in the log, ascending; ``batch``: their columns
    (:mod:`skerry.execution.stream_batches`); ``hits``: by entry; ``joined``: pairs with tables, of entries that have no hits."""

    stream: int
    numbers: Int64
    batch: pa.RecordBatch
    places: Places
    hits: np.ndarray
    joined: Joined = field(default_factory=lambda: Joined.of([]))

    @property
    def entries(self) -> set[int]:
        """Those that have rows."""
        return {*self.hits["entry"].tolist(), *self.joined.entries.tolist()}

    def of(self, entry: int) -> Places:
        """Places of an entry's rows, ascending."""
        at = int(self.hits["entry"].searchsorted(entry))
        if at == len(self.hits) or self.hits["entry"][at] != entry:
            return self.places[:0]
        return np.sort(self.places[self.hits["first"][at] : self.hits["last"][at]])

    def ranges(self, entries: Int64) -> tuple[Int64, Int64]:
        """Of each of these entries: its rows are ``places[first:last]``."""
        of_hits = self.hits["entry"]
        if not len(of_hits):
            none = np.zeros(len(entries), np.int64)
            return none, none
        at = np.minimum(of_hits.searchsorted(entries), len(of_hits) - 1)
        there = of_hits[at] == entries
        first, last = (np.where(there, self.hits[end][at], 0).astype(np.int64) for end in ("first", "last"))
        return first, last

    def wanted(self) -> Matched:
        """Without places and rows that are nobody's."""
        delta = np.zeros(len(self.places) + 1, np.int64)
        np.add.at(delta, self.hits["first"], 1)
        np.subtract.at(delta, self.hits["last"], 1)
        covered = np.cumsum(delta[:-1]) > 0
        kept = np.zeros(len(self.numbers), np.bool_)
        kept[self.places[covered]] = True
        kept[self.joined.left] = True
        return self._cut(covered, None if kept.all() else kept)

    def behind(self, row: int) -> Matched:
        """The rows from a number on."""
        kept: Mask = self.numbers >= row
        return self if kept.all() else self._cut(kept[self.places], kept)

    def _cut(self, chosen: Mask, kept: Mask | None) -> Matched:
        """Only some of the places, whose rows are among those kept; None: all are."""
        if chosen.all():
            places, hits = self.places, self.hits
        else:
            before = np.concatenate([[0], np.cumsum(chosen)]).astype(np.int32)
            hits = self.hits.copy()
            for end in ("first", "last"):
                hits[end] = before[hits[end]]
            places, hits = self.places[chosen], hits[hits["last"] > hits["first"]]
        if kept is None:
            return replace(self, places=places, hits=hits)
        rank = (np.cumsum(kept) - 1).astype(np.int32)
        numbers, batch = self.numbers[kept], self.batch.filter(pa.array(kept))
        joined = self.joined.kept(kept)
        return replace(self, numbers=numbers, batch=batch, places=rank[places], hits=hits, joined=joined)


@dataclass(frozen=True, slots=True)
class MatchedBatch:
    """Rows ``first`` .. ``end`` - 1 of the log, matched against the users' index as of ``version``. ``streams``: those that have rows
    among them; ``parts``: of one stream in the order of their numbers; ``folded``: for windows, by entry of the index, of each partition
    of the batch that has rows of its streams. None: rows were cut off that had been folded with others."""

    first: int
    end: int
    version: int
    streams: frozenset[int]
    parts: tuple[Matched, ...]
    folded: tuple[tuple[int, PartialPanes], ...] | None

    def behind(self, row: int) -> MatchedBatch:
        """The part from a row on."""
        if row <= self.first:
            return self
        parts = [part.behind(row) for part in self.parts]
        left = tuple(part for part in parts if len(part.numbers))
        return replace(self, first=min(row, self.end), parts=left, folded=None)
