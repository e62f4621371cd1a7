"""Rows of a batch joined with tables by executors: which rows of the stream meet which rows of which readings of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skerry.execution.range_index import Int64, Places
from skerry.execution.residual import Rows
from skerry.expressions.evaluate import Mask


class ReadingGoneError(LookupError):
    """A reading of a table that rows were joined with is not there any more: they are to be joined anew, from the log."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows that meet the same readings of all tables of a query: places of the stream's, ascending, some several times; by table, in the
    query's order, the ``versions`` and in ``found`` the rows of each that meet them."""

    left: Int64
    versions: Sequence[int]
    found: Sequence[Int64]


#: Pairs of some rows of a part of a batch. Raises TableError where they cannot be found now.
Join = Callable[[Rows, Places], list[Pairs]]
#: Makes one of what :meth:`skerry.tables.pairs.Pairing.to_text` wrote.
MakeJoin = Callable[[str], Join]


@dataclass(frozen=True, slots=True)
class Joined:
    """Pairs of many entries of the users' index. ``entries``, ascending, may have one several times, where tables changed meanwhile;
    pairs of entry i are ``first[i]`` .. ``first[i + 1]`` - 1. ``left``: places of rows of the stream; ``found``: rows of tables, a line
    for each table of the entry that has most, and ``versions`` of these, a line for each entry. -1: the entry has no such table."""

    entries: Int64
    first: Int64
    left: Places
    found: Places
    versions: Int64

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, Pairs]]) -> Joined:
        """Of pairs by entry."""
        ordered = sorted(((entry, one) for entry, one in pairs if len(one.left)), key=lambda known: known[0])
        if not ordered:
            return _NOTHING
        width = max(len(one.versions) for _, one in ordered)
        sizes = [len(one.left) for _, one in ordered]
        found = np.full((width, sum(sizes)), -1, np.int32)
        versions = np.full((len(ordered), width), -1, np.int64)
        at = 0
        for i, (_, one) in enumerate(ordered):
            versions[i, : len(one.versions)] = one.versions
            for table, rows in enumerate(one.found):
                found[table, at : at + sizes[i]] = rows
            at += sizes[i]
        left = np.concatenate([one.left for _, one in ordered]).astype(np.int32)
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(np.array([entry for entry, _ in ordered], np.int64), first, left, found, versions)

    def __bool__(self) -> bool:
        return len(self.entries) > 0

    def pairs(self, entry: int) -> list[Pairs]:
        """An entry's."""
        begin, end = np.searchsorted(self.entries, [entry, entry + 1]).tolist()
        pairs = []
        for i in range(begin, end):
            first, last = int(self.first[i]), int(self.first[i + 1])
            versions = [version for version in self.versions[i].tolist() if version >= 0]
            found = [self.found[table, first:last].astype(np.int64) for table in range(len(versions))]
            pairs.append(Pairs(self.left[first:last].astype(np.int64), versions, found))
        return pairs

    def kept(self, rows: Mask) -> Joined:
        """Of these rows of the stream alone, whose places are among those."""
        rank = (np.cumsum(rows) - 1).astype(np.int32)
        if rows.all():
            return self
        chosen = rows[self.left]
        before = np.concatenate([[0], np.cumsum(chosen)]).astype(np.int64)
        first = before[self.first]
        some = first[1:] > first[:-1]
        bounds = np.concatenate([first[:-1][some], first[-1:]])
        return Joined(
            self.entries[some], bounds, rank[self.left[chosen]], self.found[:, chosen], self.versions[some]
        )

    def to_batch(self) -> pa.RecordBatch:
        """As one row of Arrow's."""
        width = [self.versions.shape[1]]
        arrays = [
            self.entries,
            self.first,
            self.left,
            self.found.reshape(-1),
            self.versions.reshape(-1),
            width,
        ]
        return pa.RecordBatch.from_arrays(
            [pa.array([array], pa.list_(kind)) for array, kind in zip(arrays, _KINDS, strict=True)], _NAMES
        )

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch) -> Joined:
        """What :meth:`to_batch` wrote."""
        entries, first, left, found, versions, width = (
            column.values.to_numpy(zero_copy_only=False) for column in batch.columns
        )
        lines = int(width[0])
        return cls(
            entries, first, left, found.reshape(lines, len(left)), versions.reshape(len(entries), lines)
        )


_NAMES = ["entries", "first", "left", "found", "versions", "width"]
_KINDS = [pa.int64(), pa.int64(), pa.int32(), pa.int32(), pa.int64(), pa.int64()]
_NOTHING = Joined(
    np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int32), np.empty((0, 0), np.int32),
    np.empty((0, 0), np.int64),
)  # fmt: skip
