"""The W-join operator: rows of a batch in, answers out, state between batches (STEAM 2002, 6.2).

It waits for nobody: an answer comes in the batch that brings the last of its rows, whichever streams are silent. What it gives is a
function of the log, whatever the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from skerry.joins.answers import table_of
from skerry.joins.expansion import Expansion
from skerry.joins.group import Entry, Group, PoolKey
from skerry.joins.pool import PANES, Pool, View
from skerry.joins.progress import NEVER, Bool, Course, Int64
from skerry.joins.rows import Algorithm, Rows, no_rows, sorted_for
from skerry.joins.shared import SharedMatches

#: Which answers are given, by the times of their earliest rows: others give the other ones.
Owned: TypeAlias = Callable[[Int64], Bool]


class StateLimitError(RuntimeError):
    """A join keeps more than it may; the message says how much, and what would be less."""


class Operator:
    """Of one group, or of one bucket of its rows. ``limit_bytes``: it keeps no more. ``owned``: None: all answers."""

    def __init__(self, group: Group, limit_bytes: int | None = None, owned: Owned | None = None) -> None:
        self._group, self._limit, self._owned = group, limit_bytes, owned
        self.algorithm: Algorithm = group.algorithm
        self.pools: dict[PoolKey, Pool] = {}
        self.progress_us = NEVER
        #: Pairs of rows that were looked at so far.
        self.pairs = 0

    def advance(
        self, rows: Mapping[PoolKey, Rows], progress_us: int, course: Course | None = None
    ) -> dict[str, pa.Table]:
        """Answers by join that these rows bring, the next ones in the log; progress after them, and how it has come there, which is for
        those who wait for it."""
        del course
        views = self._views(rows)
        alike: dict[tuple[PoolKey, ...], list[str]] = {}
        for name, entry in self._group.entries.items():
            alike.setdefault(entry.pools, []).append(name)
        found = {}
        for pools, names in alike.items():
            found.update(self._answers(names, [views[pool] for pool in pools]))
        answers = {name: found[name] for name in self._group.entries}
        self._keep(views, max(progress_us, self.progress_us))
        return answers

    def finish(self) -> dict[str, pa.Table]:
        """All streams have ended: no answer has waited."""
        return self.advance({}, self.progress_us)

    def _views(self, rows: Mapping[PoolKey, Rows]) -> dict[PoolKey, View]:
        """By pool what is kept, and these rows behind it."""
        algorithm, views = self._group.algorithm, {}
        for pool, need in self._group.needs.items():
            if pool not in self.pools:
                self.pools[pool] = Pool(algorithm, (need.retention_us + self._group.lateness_us) // PANES)
            fresh = sorted_for(algorithm, rows[pool]) if pool in rows else no_rows()
            views[pool] = View(self.pools[pool].runs, fresh)
        return views

    def _answers(self, names: Sequence[str], views: Sequence[View]) -> dict[str, pa.Table]:
        """Of joins whose aliases have the same rows."""
        entries = {name: self._group.entries[name] for name in names}
        if self.algorithm == "HW" and len(names) > 1:
            shared = SharedMatches([entry.member for entry in entries.values()], views)
            self.pairs += shared.pairs
            return {name: shared.table(entry.join, entry.member) for name, entry in entries.items()}
        found = {}
        for name, entry in entries.items():
            expansion = Expansion(self.algorithm, entry.member, views)
            found[name] = self._table(entry, views, expansion.answers())
            self.pairs += expansion.pairs
        return found

    def _table(self, entry: Entry, views: Sequence[View], places: list[Int64]) -> pa.Table:
        if self._owned is not None:
            times = [view.whole("time", rows) for view, rows in zip(views, places, strict=True)]
            given = self._owned(np.minimum.reduce(times))
            places = [rows[given] for rows in places]
        return table_of(entry.join, views, places)

    def _keep(self, views: Mapping[PoolKey, View], progress_us: int) -> None:
        self.progress_us = progress_us
        for pool in [pool for pool in self.pools if pool not in self._group.needs]:
            del self.pools[pool]
        for pool, need in self._group.needs.items():
            fresh = views[pool].fresh
            before = progress_us - need.retention_us
            self.pools[pool].add(fresh.take(fresh.time >= before))
            self.pools[pool].expire(before)
        self._check_limit()

    def _check_limit(self) -> None:
        if self._limit is not None and self.bytes > self._limit:
            raise StateLimitError(
                f"the join keeps {self.bytes:,} bytes, more than its limit of {self._limit:,}: choose shorter windows, a shorter LATENESS "
                "or conditions that fewer rows pass"
            )

    @property
    def bytes(self) -> int:
        """What is kept."""
        return sum(pool.bytes for pool in self.pools.values())

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return sum(map(len, self.pools.values()))
