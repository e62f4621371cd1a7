"""What rows all of them need who read one stream of plain rows: of ten thousand without looking at all of them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from skerry.expressions import build
from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr, render
from skerry.expressions.ranges import RangeFilter, condition_of, ranges_of
from skerry.planner.model.columns import attribute_columns
from skerry.planner.model.plans import MoteQuery
from skerry.planner.physical.program import fits
from skerry_protocol.attributes import ATTRIBUTES
from skerry_protocol.bytecode import Op

_Counted = TypeVar("_Counted")
#: More different conditions than this never fit a program (3 bytes each at least).
_CONDITIONS_MAXIMUM = 40


@dataclass(frozen=True, slots=True)
class RowNeed:
    """The attributes that somebody needs, at least how often, of the rows for which a condition is true; None: of all."""

    attributes: frozenset[int]
    period_ms: int
    where: Expr | None


class RowUnion:
    """The needs of a stream's readers, who come and go."""

    def __init__(self, needs: Iterable[RowNeed] = ()) -> None:
        self._attributes: Counter[int] = Counter()
        self._periods: Counter[int] = Counter()
        self._conditions: Counter[Expr | None] = Counter()
        self._ranges: dict[Expr | None, dict[int, RangeFilter]] = {}
        self._bounds: dict[int, tuple[Counter[int | None], Counter[int | None]]] = {}
        for need in needs:
            self.add(need)

    def __bool__(self) -> bool:
        return bool(self._periods)

    @property
    def attributes(self) -> frozenset[int]:
        """All that somebody needs."""
        return frozenset(self._attributes)

    @property
    def period_ms(self) -> int:
        """How often somebody needs rows. Raises ValueError where nobody does."""
        return min(self._periods)

    def add(self, need: RowNeed) -> None:
        """One more."""
        self._attributes.update(need.attributes)
        self._periods[need.period_ms] += 1
        self._conditions[need.where] += 1
        if self._conditions[need.where] == 1:
            self._ranges[need.where] = {r.attribute: r for r in ranges_of(need.where)}
            for number, bounds in self._ranges[need.where].items():
                lows, highs = self._bounds.setdefault(number, (Counter(), Counter()))
                lows[bounds.low] += 1
                highs[bounds.high] += 1

    def remove(self, need: RowNeed) -> None:
        """One that was added goes."""
        _take(self._periods, need.period_ms)
        for number in need.attributes:
            _take(self._attributes, number)
        _take(self._conditions, need.where)
        if need.where not in self._conditions:
            for number, bounds in self._ranges.pop(need.where).items():
                _take(self._bounds[number][0], bounds.low)
                _take(self._bounds[number][1], bounds.high)

    def query(self) -> MoteQuery:
        """The mote query that serves all of them; it may have too many columns for a mote."""
        base = MoteQuery(self.period_ms, False, False, attribute_columns(self.attributes), None)
        if None in self._conditions:
            return base
        if len(self._conditions) == 1:
            return replace(base, where=next(iter(self._conditions)))
        for where in (self._any_of(), self._hull()):
            if where is not None and obstacle(where) is None and fits(query := replace(base, where=where)):
                return query
        return base

    def with_(self, needs: Iterable[RowNeed]) -> MoteQuery:
        """The same with some needs more."""
        added = list(needs)
        for need in added:
            self.add(need)
        try:
            return self.query()
        finally:
            for need in added:
                self.remove(need)

    def _any_of(self) -> Expr | None:
        if len(self._conditions) > _CONDITIONS_MAXIMUM:
            return None
        # Sorted, so that the order in which users came does not matter.
        conditions = [condition for condition in self._conditions if condition is not None]
        return build.join(Op.OR, sorted(conditions, key=render))

    def _hull(self) -> Expr | None:
        """A range of one attribute around what all conditions ask of it."""
        for entry in ATTRIBUTES:
            lows, highs = self._bounds.get(entry.number, (Counter(), Counter()))
            if lows.total() == len(self._conditions):
                outer = RangeFilter(
                    entry.number,
                    None if None in lows else min(cast("Counter[int]", lows)),
                    None if None in highs else max(cast("Counter[int]", highs)),
                )
                if outer.low is not None or outer.high is not None:
                    return condition_of(outer, build.attribute(entry))
        return None


def _take(counts: Counter[_Counted], key: _Counted) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
