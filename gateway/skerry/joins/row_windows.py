"""Joins with ``WINDOW n ROWS``: rows are taken in the one order of their times, once no row before them can still come.

Of two rows, the earlier one by time and number must be among the last n rows of its source, up to the later one, that pass its alias's own
conditions. So each row is numbered in that order, and has for each n the number of the row that displaces it: the window is a condition on
these numbers. Arrival plays no part: a row takes part once progress has reached its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import numpy as np
import pyarrow as pa

from skerry.joins.answers import table_of
from skerry.joins.conditions import AllOf, AnyOf, Column, Compared, Condition
from skerry.joins.expansion import Expansion
from skerry.joins.group import Group, PoolKey
from skerry.joins.join import JoinError
from skerry.joins.pool import Run, View
from skerry.joins.progress import NEVER, Course, Int64
from skerry.joins.retained import retained
from skerry.joins.rows import KEYED, Rows, concatenated, decode, encode, no_rows, sorted_for

#: Beyond every time and every place in the order: all rows are settled, no row displaces.
ENDED_US = 1 << 61
STANDING = 1 << 62
ORDER = "order"


def displaced(rows: int) -> str:
    """The field with the place of the row that displaces one from a window of so many rows."""
    return f"displaced by {rows}"


def row_condition(one: str, other: str, rows: int) -> Condition:
    """What a window of rows says of two aliases' rows."""

    def within(earlier: str, later: str) -> Condition:
        places = Column(earlier, ORDER), Column(later, ORDER)
        return AllOf(
            (Compared("<=", *places), Compared("<", Column(later, ORDER), Column(earlier, displaced(rows))))
        )

    return AnyOf((within(one, other), within(other, one)))


class _Kept(msgspec.Struct):
    next: int
    progress_us: int
    aliases: list[bytes]
    pending: list[bytes]
    counts: list[list[tuple[int, int]]]


class RowWindowOperator:
    """Of a group that has one join, with a window of rows. Where its keys lie plays no part: rows of all keys count."""

    def __init__(self, group: Group) -> None:
        if len(group.entries) != 1:
            raise JoinError("a join with a window of rows shares its operator with no other")
        [(self._name, self._entry)] = group.entries.items()
        self._algorithm = group.algorithm
        join = self._entry.join
        windows = {join.graph.places(pair): window for pair, window in join.windows.items()}
        counted = [
            row_condition(join.aliases[places[0]], join.aliases[places[1]], window.rows)
            for places, window in windows.items()
            if window.rows is not None
        ]
        member = self._entry.member
        self._member = replace(member, conditions=[*member.conditions, *counted], since=0)
        self._windows = windows
        self._counts: list[dict[int, int]] = [{} for _ in join.aliases]
        self._kept: list[Rows] = [no_rows() for _ in join.aliases]
        self._pending: dict[PoolKey, Rows] = {pool: no_rows() for pool in self._entry.pools}
        self._next = 0
        self.progress_us = NEVER
        self.pairs = 0

    def advance(
        self, rows: Mapping[PoolKey, Rows], progress_us: int, course: Course | None = None
    ) -> dict[str, pa.Table]:
        """Answers by join that progress brings, after these rows, the next ones in the log."""
        del course
        self.progress_us = max(progress_us, self.progress_us)
        settled = {}
        for pool, pending in self._pending.items():
            everything = concatenated([pending, rows[pool]]) if pool in rows else pending
            due = everything.time <= self.progress_us
            settled[pool], self._pending[pool] = everything.take(due), everything.take(~due)
        order = self._order(settled)
        views = [
            self._view(place, settled[pool], order[pool]) for place, pool in enumerate(self._entry.pools)
        ]
        expansion = Expansion(self._algorithm, self._member, views)
        places = expansion.answers()
        self.pairs += expansion.pairs
        answers = table_of(self._entry.join, views, places, by_time=True)
        kept = retained(
            [concatenated([run.rows for run in view.old] + [view.fresh]) for view in views],
            self._windows, self.progress_us, complete=self._entry.join.graph.is_complete,
        )  # fmt: skip
        self._kept = kept
        return {self._name: answers}

    def finish(self) -> dict[str, pa.Table]:
        """Answers that waited for rows that will not come: all streams have ended."""
        return self.advance({}, ENDED_US)

    def save(self) -> bytes:
        """What is kept, without pickle."""
        return msgspec.msgpack.encode(
            _Kept(
                self._next, self.progress_us, [encode(rows) for rows in self._kept],
                [encode(rows) for rows in self._pending.values()], [list(counts.items()) for counts in self._counts],
            )
        )  # fmt: skip

    def restore(self, saved: bytes) -> None:
        """What was kept."""
        kept = msgspec.msgpack.decode(saved, type=_Kept)
        self._next, self.progress_us = kept.next, kept.progress_us
        self._kept = [decode(rows) for rows in kept.aliases]
        self._pending = {pool: decode(rows) for pool, rows in zip(self._pending, kept.pending, strict=True)}
        self._counts = [dict(counts) for counts in kept.counts]

    def _order(self, settled: Mapping[PoolKey, Rows]) -> dict[PoolKey, Int64]:
        """Places in the one order of all rows so far; a row of two pools has one place."""
        parts = list(settled.values())
        times, numbers = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("time", "number")
        )
        order = np.lexsort([numbers, times])
        new = np.diff(numbers[order], prepend=-1) != 0
        places = np.empty(len(times), np.int64)
        places[order] = self._next + np.cumsum(new) - 1
        self._next += int(new.sum())
        ends = np.cumsum([len(part) for part in parts])
        return dict(zip(settled, np.split(places, ends[:-1]), strict=True))

    def _view(self, alias: int, rows: Rows, order: Int64) -> View:
        """An alias's rows, each with its place and with those that displace it."""
        own = ((rows.passes & self._member.bits[alias]) != 0) & (rows.number >= self._entry.member.since)
        rows, order = rows.take(own), order[own]
        by_order = np.argsort(order)
        rows, order = rows.take(by_order), order[by_order]
        ranks, sources, firsts, starts, by_source = self._ranked(alias, rows.source)
        ordered = order[by_source]
        ends = np.append(starts[1:], len(ordered)) if len(starts) else starts

        def with_displacing(part: Rows, own_order: Int64, own_rank: Int64) -> Rows:
            fields = dict(part.fields)
            fields[ORDER], fields["rank"] = pa.array(own_order), pa.array(own_rank)
            group = np.searchsorted(sources, part.source)
            met = group < len(sources)
            met[met] = sources[group[met]] == part.source[met]
            for n in self._counted(alias):
                known = part.fields.get(displaced(n))
                found = (
                    np.full(len(part), STANDING)
                    if known is None
                    else known.to_numpy(zero_copy_only=False).copy()
                )
                left = np.flatnonzero(met & (found == STANDING))
                at = own_rank[left] + n - firsts[group[left]] + starts[group[left]]
                there = at < ends[group[left]]
                found[left[there]] = ordered[at[there]]
                fields[displaced(n)] = pa.array(found)
            return replace(part, fields=fields)

        kept = self._kept[alias]
        old = []
        if len(kept):
            places, standing = (kept.fields[name].to_numpy(zero_copy_only=False) for name in (ORDER, "rank"))
            old = [Run.of(0, 0, self._keyed(with_displacing(kept, places, standing)))]
        return View(old, self._keyed(with_displacing(rows, order, ranks)))

    def _ranked(self, alias: int, source: Int64) -> tuple[Int64, Int64, Int64, Int64, Int64]:
        """How manieth of its source each row is; the sources, the rank of the first row of each, where it begins when rows are sorted by
        source, and that order."""
        by_source = np.argsort(source, kind="stable")
        sources, starts, counts = np.unique(source[by_source], return_index=True, return_counts=True)
        known = self._counts[alias]
        firsts = np.array([known.get(int(one), 0) + 1 for one in sources], np.int64)
        ranks = np.empty(len(source), np.int64)
        ranks[by_source] = np.arange(len(source)) - np.repeat(starts - firsts, counts)
        known.update(
            {int(one): known.get(int(one), 0) + int(n) for one, n in zip(sources, counts, strict=True)}
        )
        return ranks, sources, firsts, starts, by_source

    def _counted(self, alias: int) -> list[int]:
        return sorted(
            {
                window.rows
                for pair, window in self._windows.items()
                if alias in pair and window.rows is not None
            }
        )

    def _keyed(self, rows: Rows) -> Rows:
        """Without those that meet nobody: they have been counted."""
        if self._algorithm == "HW":
            rows = rows.take((rows.passes & KEYED) != 0)
        return sorted_for(self._algorithm, rows)

    @property
    def bytes(self) -> int:
        """What is kept."""
        return sum(rows.bytes for rows in [*self._kept, *self._pending.values()])

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return sum(map(len, [*self._kept, *self._pending.values()]))
