"""Answers of a batch: from the rows that have just come, stream after stream, to one row of each alias.

Each answer is found once, from the first of its aliases whose row has just come: aliases before it have rows that were there, aliases
behind it have either. The period in which the next alias's row may lie shrinks with each row that joins (STEAM 2002, 6.2.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skerry.joins.conditions import Columns, Condition, aliases_of, evaluate
from skerry.joins.matching import PAIRS, met, ranges
from skerry.joins.pool import Run, View
from skerry.joins.progress import NEVER, Bool, Int64
from skerry.joins.rows import Algorithm, UInt64
from skerry.joins.windows import UNBOUNDED

#: Neither a time nor a difference of two is beyond.
_END = UNBOUNDED


@dataclass(frozen=True)
class Member:
    """One join as an operator runs it. ``bits``: what of ``passes`` says that a row is the alias's;
    ``conditions``: what is left when rows of equal keys have met. ``since``: rows with lower numbers are not this join's."""

    aliases: tuple[str, ...]
    distance: Sequence[Sequence[int]]
    bits: tuple[np.uint64, ...]
    conditions: Sequence[Condition]
    since: int = 0


@dataclass
class Partial:
    """Rows of some aliases that are together so far: places in their views, by the aliases' places."""

    rows: dict[int, Int64]
    times: dict[int, Int64]
    key: Int64

    def __len__(self) -> int:
        return len(self.key)

    def take(self, places: Int64 | Bool) -> Partial:
        """These of them."""
        return Partial(
            {alias: rows[places] for alias, rows in self.rows.items()},
            {alias: times[places] for alias, times in self.times.items()},
            self.key[places],
        )


@dataclass
class Expansion:
    """Of one batch for one join. ``pairs``: so many pairs of rows were looked at."""

    algorithm: Algorithm
    member: Member
    views: Sequence[View]
    pairs: int = 0

    def answers(self) -> list[Int64]:
        """By alias the places of its rows in the answers."""
        found = [part for first in range(len(self.views)) for part in self._from(first)]
        return [
            np.concatenate([part.rows[alias] for part in found]) if found else np.zeros(0, np.int64)
            for alias in range(len(self.views))
        ]

    def _from(self, first: int) -> Iterator[Partial]:
        view = self.views[first]
        rows = view.fresh
        own = np.flatnonzero(self._is_own(first, rows.passes, rows.number))
        if not len(own):
            return
        begun = Partial({first: own + view.base}, {first: rows.time[own]}, rows.key[own])
        # What ON of another alias asks of this one's rows does not choose among them.
        begun = self._fulfilling(begun, first, {first})
        if len(begun):
            yield from self._expanded(begun, first, self._order(first))

    def _is_own(self, alias: int, passes: UInt64, numbers: Int64) -> Bool:
        own: Bool = (passes & self.member.bits[alias]) == self.member.bits[alias]
        if self.member.since:
            own &= numbers >= self.member.since
        return own

    def _order(self, first: int) -> list[int]:
        """The other aliases: those first that a condition ties to the ones before, the nearest of them first."""
        order, distance = [first], self.member.distance
        left = [alias for alias in range(len(self.views)) if alias != first]
        while left:
            left.sort(
                key=lambda alias: (
                    not self._is_tied(alias, order),
                    min(distance[alias][one] for one in order),
                    alias,
                )
            )
            order.append(left.pop(0))
        return order[1:]

    def _is_tied(self, alias: int, others: Sequence[int]) -> bool:
        name, names = self.member.aliases[alias], {self.member.aliases[one] for one in others}
        reading = [aliases_of(condition) for condition in self.member.conditions]
        return self.algorithm == "HW" or any(name in read and read <= names | {name} for read in reading)

    def _expanded(self, partial: Partial, first: int, order: Sequence[int]) -> Iterator[Partial]:
        if not order:
            yield partial
            return
        alias, *others = order
        # Together, not run by run: what is done for a few rows takes as long as for some thousand.
        waiting: list[Partial] = []
        for more in self._joined(partial, alias, first):
            waiting.append(more)
            if sum(map(len, waiting)) > PAIRS:
                yield from self._expanded(_together(waiting), first, others)
                waiting = []
        if waiting:
            yield from self._expanded(_together(waiting), first, others)

    def _joined(self, partial: Partial, alias: int, first: int) -> Iterator[Partial]:
        """With a row of one more alias, for which all conditions are true that can be told by now."""
        lows, highs = self._period(partial, alias)
        bound = {*partial.rows, alias}
        for base, run in self._runs(alias, first, int(lows.min()), int(highs.max())):
            rows = run.rows
            for who, offsets in met(*ranges(self.algorithm, run, partial.key, lows, highs)):
                self.pairs += len(who)
                keep = self._is_own(alias, rows.passes[offsets], rows.number[offsets])
                if self.algorithm == "NLW":
                    times = rows.time[offsets]
                    keep &= (times >= lows[who]) & (times <= highs[who])
                pair = (who, offsets) if keep.all() else (who[keep], offsets[keep])
                if len(pair[0]):
                    more = partial.take(pair[0])
                    more.rows[alias], more.times[alias] = pair[1] + base, rows.time[pair[1]]
                    more = self._fulfilling(more, alias, bound)
                    if len(more):
                        yield more

    def _period(self, partial: Partial, alias: int) -> tuple[Int64, Int64]:
        """From when to when a row of this alias is near enough to all that are there."""
        lows, highs = np.full(len(partial), NEVER), np.full(len(partial), _END)
        for one, times in partial.times.items():
            reach = self.member.distance[one][alias]
            if reach < UNBOUNDED:
                lows, highs = np.maximum(lows, times - reach), np.minimum(highs, times + reach)
        return lows, highs

    def _runs(self, alias: int, first: int, low: int, high: int) -> Iterator[tuple[int, Run]]:
        """Runs that have rows within a time, and where they begin."""
        view = self.views[alias]
        for base, run in zip(view.bases, view.old, strict=False):
            if run.first_us <= high and run.last_us >= low:
                yield int(base), run
        if alias > first and len(view.fresh):
            yield view.base, Run.of(-1, -1, view.fresh)

    def _fulfilling(self, partial: Partial, alias: int, bound: set[int]) -> Partial:
        names = {self.member.aliases[one] for one in bound}
        newest = self.member.aliases[alias]
        for condition in self.member.conditions:
            read = aliases_of(condition)
            if newest in read and read <= names and len(partial):
                values = evaluate(condition, self._columns(partial), len(partial))
                true = values.fill_null(False).to_numpy(zero_copy_only=False)
                if not true.all():
                    partial = partial.take(true)
        return partial

    def _columns(self, partial: Partial) -> Columns:
        def column(alias: str, name: str) -> pa.Array:
            place = self.member.aliases.index(alias)
            return self.views[place].field(name, partial.rows[place])

        return column


def _together(parts: list[Partial]) -> Partial:
    if len(parts) == 1:
        return parts[0]
    rows, times = (
        {alias: np.concatenate([getattr(part, name)[alias] for part in parts]) for alias in parts[0].rows}
        for name in ("rows", "times")
    )
    return Partial(rows, times, np.concatenate([part.key for part in parts]))
