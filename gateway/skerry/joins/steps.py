"""One step of a LEFT or ASOF join: what is together so far, with rows of one more alias, or without."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from skerry.joins.conditions import evaluate
from skerry.joins.expansion import Expansion, Member, Partial
from skerry.joins.join import Step
from skerry.joins.latest import latest
from skerry.joins.pool import Run, View
from skerry.joins.progress import Bool, Int64
from skerry.joins.rows import Algorithm

#: Among the aliases' places: which of those who look it is.
_WHO = -1
#: Before any row that has just come: all there are may be met.
_ANY = -1
#: A field's type, by alias and name.
Types = Callable[[str, str], pa.DataType]


class StepExpansion(Expansion):
    """Those who look may lack rows of some aliases: these are NULL in conditions, which are ON's, all of them. ``place``: the alias's."""

    def __init__(
        self,
        algorithm: Algorithm,
        member: Member,
        views: Sequence[View],
        step: Step,
        place: int,
        types: Types,
    ) -> None:
        super().__init__(algorithm, member, views)
        self._step, self._place, self._types = step, place, types

    def joined(self, partial: Partial) -> list[Partial]:
        """Those who have met rows, and apart from them who is there without."""
        if not len(partial):
            return []
        who = np.arange(len(partial))
        parts = self._latest(partial) if self._step.is_asof else self._all(partial, who)
        alone = np.ones(len(partial), np.bool_)
        for part in parts:
            alone[part.rows.pop(_WHO)] = False
        return [*parts, partial.take(alone)] if self._step.has_nulls and alone.any() else parts

    def _all(self, partial: Partial, who: Int64) -> list[Partial]:
        looking = Partial({**partial.rows, _WHO: who}, partial.times, partial.key)
        return list(self._joined(looking, self._place, _ANY))

    def _period(self, partial: Partial, alias: int) -> tuple[Int64, Int64]:
        """The same; nothing where no row is near enough to all: windows of their own hold two that a way over others would not."""
        lows, highs = super()._period(partial, alias)
        return lows, np.maximum(highs, lows - 1)

    def _latest(self, partial: Partial) -> list[Partial]:
        lows, highs = self._period(partial, self._place)
        highs = np.minimum(highs, np.maximum.reduce([*partial.times.values()]))
        view = self.views[self._place]

        def meets(who: Int64, run: Run, offsets: Int64) -> Bool:
            rows = run.rows
            true = self._is_own(self._place, rows.passes[offsets], rows.number[offsets])

            def column(alias: str, name: str) -> pa.Array:
                if alias == self.member.aliases[self._place]:
                    return rows.field(name).take(pa.array(offsets))
                return self._column(partial, alias, name).take(pa.array(who))

            return self._fulfils(true, column)

        places = latest(self.algorithm, view, partial.key, lows, highs, meets)
        met = np.flatnonzero(places >= 0)
        found = partial.take(met)
        found.rows[self._place], found.rows[_WHO] = places[met], met
        found.times[self._place] = view.whole("time", places[met])
        return [found] if len(met) else []

    def _fulfilling(self, partial: Partial, alias: int, bound: set[int]) -> Partial:
        del alias, bound
        true = self._fulfils(
            np.ones(len(partial), np.bool_), lambda alias, name: self._column(partial, alias, name)
        )
        return partial if true.all() else partial.take(true)

    def _fulfils(self, true: Bool, columns: Callable[[str, str], pa.Array]) -> Bool:
        for condition in self.member.conditions:
            if true.any():
                values = evaluate(condition, columns, len(true))
                true = true & values.fill_null(False).to_numpy(zero_copy_only=False)
        return true

    def _column(self, partial: Partial, alias: str, name: str) -> pa.Array:
        place = self.member.aliases.index(alias)
        if place in partial.rows:
            return self.views[place].field(name, partial.rows[place])
        return pa.nulls(len(partial), self._types(alias, name))
