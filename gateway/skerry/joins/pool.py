"""What a join keeps of one stream: sorted runs of rows in panes of time.

A batch's rows become runs of the panes in which their times lie. A pane's runs are merged when the newer one has grown to half of the one
before, so that a row is written again a logarithmic number of times, however many batches a window spans. Panes that windows have passed
go as a whole, rows of rarely probed keys with the others: the upkeep that STEAM 2002, 6.2.3 asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skerry.joins.progress import Int64
from skerry.joins.rows import Algorithm, Rows, UInt64, concatenated, sorted_for

#: Into how many panes a window's length is cut.
PANES = 8
#: Panes are no shorter: 100 ms in µs.
SHORTEST_US = 100_000
#: A run is merged with the one before it, if that is at most so many times as long.
_GROWTH = 2


@dataclass(frozen=True, slots=True)
class Run:
    """Rows in the order of an algorithm, never changed. ``number``: its own among all runs of its pool."""

    number: int
    pane: int
    rows: Rows
    first_us: int
    last_us: int

    @classmethod
    def of(cls, number: int, pane: int, rows: Rows) -> Run:
        """Of sorted rows, at least one."""
        return cls(number, pane, rows, int(rows.time.min()), int(rows.time.max()))


class Pool:
    """All runs of one stream. ``pane_us``: how long a pane is."""

    def __init__(self, algorithm: Algorithm, pane_us: int) -> None:
        self.algorithm: Algorithm = algorithm
        self.pane_us = max(pane_us, SHORTEST_US)
        self._panes: dict[int, list[Run]] = {}
        #: Of the next run.
        self.next_number = 0

    def add(self, rows: Rows) -> None:
        """Rows that are to be met by later ones."""
        if not len(rows):
            return
        panes = rows.time // self.pane_us
        first, last = int(panes.min()), int(panes.max())
        parts: list[tuple[int, Rows]]
        if first == last:
            parts = [(first, rows)]
        else:
            order = np.argsort(panes, kind="stable")
            rows, panes = rows.take(order), panes[order]
            starts = np.flatnonzero(np.diff(panes, prepend=first - 1))
            ends = np.append(starts[1:], len(rows))
            parts = [
                (int(panes[start]), rows.slice(int(start), int(end)))
                for start, end in zip(starts, ends, strict=True)
            ]
        for pane, part in parts:
            self._put(pane, sorted_for(self.algorithm, part))

    def _put(self, pane: int, rows: Rows) -> None:
        runs = self._panes.setdefault(pane, [])
        merged = [rows]
        length = len(rows)
        while runs and len(runs[-1].rows) <= _GROWTH * length:
            merged.append(runs.pop().rows)
            length += len(merged[-1])
        if len(merged) > 1:
            rows = sorted_for(self.algorithm, concatenated(merged[::-1]))
        runs.append(Run.of(self.next_number, pane, rows))
        self.next_number += 1

    def restore(self, run: Run) -> None:
        """A run as it was kept; those of a pane in the order of their numbers."""
        self._panes.setdefault(run.pane, []).append(run)
        self.next_number = max(self.next_number, run.number + 1)

    def expire(self, before_us: int) -> None:
        """No row with a time below is needed any more."""
        for pane in [pane for pane in self._panes if (pane + 1) * self.pane_us <= before_us]:
            del self._panes[pane]

    @property
    def runs(self) -> list[Run]:
        """All of them, by pane."""
        return [run for pane in sorted(self._panes) for run in self._panes[pane]]

    @property
    def bytes(self) -> int:
        """What the rows take in memory."""
        return sum(run.rows.bytes for run in self.runs)

    def __len__(self) -> int:
        return sum(len(run.rows) for run in self.runs)


class View:
    """A pool's runs and the rows that have just come, behind one another: a row's place is its offset in all of them."""

    def __init__(self, runs: list[Run], fresh: Rows) -> None:
        self.fresh = fresh
        #: Without those that have just come.
        self.old = runs
        parts = [run.rows for run in runs]
        self._parts = [*parts, fresh]
        self.bases = np.cumsum([0, *map(len, parts)])
        #: Where the rows that have just come begin.
        self.base = int(self.bases[-1])

    def whole(self, name: str, places: Int64) -> Int64:
        """Times, numbers, keys or sources at these places."""
        if not self.old:
            found: Int64 = getattr(self.fresh, name)[places]
            return found
        out = np.empty(len(places), np.int64)
        for part, where, offsets in self._located(places):
            out[where] = getattr(self._parts[part], name)[offsets]
        return out

    def passes(self, places: Int64) -> UInt64:
        """Whose own conditions rows at these places pass, as bits."""
        out = np.empty(len(places), np.uint64)
        for part, where, offsets in self._located(places):
            out[where] = self._parts[part].passes[offsets]
        return out

    def field(self, name: str, places: Int64) -> pa.Array:
        """A field's values at these places."""
        located = self._located(places)
        if not located:
            return self.fresh.field(name).slice(0, 0)
        found = [self._parts[part].field(name).take(pa.array(offsets)) for part, _, offsets in located]
        if len(found) == 1:
            return found[0]
        # Whoever was not wanted yet when its rows came is NULL in them.
        kind = next((one.type for one in found if not pa.types.is_null(one.type)), found[0].type)
        order = np.concatenate([where for _, where, _ in located])
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_arrays([one.cast(kind) for one in found]).take(pa.array(back))

    def _located(self, places: Int64) -> list[tuple[int, Int64, Int64]]:
        """By part: which of the places are in it, and at which offsets."""
        if not len(places):
            return []
        if not self.old:
            return [(0, np.arange(len(places)), places)]
        parts = np.searchsorted(self.bases, places, "right") - 1
        # An empty part begins where the next one does.
        order = np.argsort(parts, kind="stable")
        ordered = parts[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        ends = np.append(starts[1:], len(places))
        return [
            (int(ordered[start]), order[start:end], places[order[start:end]] - self.bases[ordered[start]])
            for start, end in zip(starts, ends, strict=True)
        ]
