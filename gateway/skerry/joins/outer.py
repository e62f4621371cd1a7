"""LEFT and ASOF joins: which rows meet nobody, and which is the latest one, is known once progress has gone past.

Aliases are joined one after the other, as FROM has them, each with what is together so far. LEFT: who meets nobody goes on alone, and the
alias is NULL. ASOF: who is together meets the latest row at its time or before, the last in the log of those of one time. Where a row is
missing, the windows of others with it lead past it: the shortest way between two aliases, over those before, bounds them.

Answers of which all rows are there and none had to be the latest are answers as in any join, and come as soon. All others of a row of the
first alias come with the row of the log by which progress goes past all that may still meet it: behind that row none of its windows can get
another one. So what is answered, and behind which row, is a function of the log, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from skerry.joins.answers import DECIDED
from skerry.joins.expansion import Expansion, Partial
from skerry.joins.group import Group, PoolKey, step_of, type_of
from skerry.joins.join import JoinError
from skerry.joins.operator import Operator
from skerry.joins.pool import View
from skerry.joins.progress import NEVER, Course, Int64
from skerry.joins.row_windows import ENDED_US
from skerry.joins.rows import KEYED, Rows
from skerry.joins.steps import StepExpansion

#: In place of a row's number.
_NOBODY = -1


class OuterOperator(Operator):
    """Of a group that has one join. ``limit_bytes``: it keeps no more."""

    def __init__(self, group: Group, limit_bytes: int | None = None) -> None:
        super().__init__(group, limit_bytes)
        if len(group.entries) != 1:
            raise JoinError("a LEFT or ASOF JOIN shares its operator with no other")
        [(self._name, entry)] = group.entries.items()
        self._join, self._pools, self._member = entry.join, entry.pools, entry.member
        #: Who has no key meets nobody, and is there all the same.
        self._keyed = replace(entry.member, bits=tuple(bit | KEYED for bit in entry.member.bits))
        self._steps = [step_of(entry, group, place) for place in range(1, len(self._pools))]

    def advance(
        self, rows: Mapping[PoolKey, Rows], progress_us: int, course: Course | None = None
    ) -> dict[str, pa.Table]:
        """Answers that these rows bring, the next ones in the log; progress after them, and how it has come there."""
        by_pool = self._views(rows)
        views = [by_pool[pool] for pool in self._pools]
        after = max(progress_us, self.progress_us)
        course = course or Course.decode([])
        met = self._met(views)
        numbers = [view.whole("number", met[place]) for place, view in enumerate(views)]
        parts = [self._answered(views, met, np.maximum.reduce(numbers))]
        for part in self._waited(views, self._due(views[0], self.progress_us, after)):
            decided = course.passing(part.times[0] + self._join.reach_us)
            parts.append(self._answered(views, part.rows, decided))
        self._keep(by_pool, after)
        return {
            self._name: _in_order(pa.concat_tables(parts, promote_options="permissive"), self._join.aliases)
        }

    def finish(self) -> dict[str, pa.Table]:
        """Answers that waited for rows that will not come: all streams have ended."""
        return self.advance({}, ENDED_US)

    def _due(self, view: View, before: int, after: int) -> Int64:
        """The places of rows of the first alias that progress, going on to ``after``, decides."""
        low = before - self._join.reach_us if before != NEVER else NEVER
        high = after - self._join.reach_us
        parts = [
            (int(base), run.rows)
            for base, run in zip(view.bases, view.old, strict=False)
            if run.first_us < high and run.last_us >= low
        ]
        found = [np.zeros(0, np.int64)]
        for base, rows in [*parts, (view.base, view.fresh)]:
            own = (rows.passes & self._member.bits[0]) != 0
            own &= (rows.number >= self._member.since) & (rows.time >= low)
            found.append(np.flatnonzero(own & (rows.time < high)) + base)
        return np.concatenate(found)

    def _met(self, views: Sequence[View]) -> dict[int, Int64]:
        """By alias the rows of answers in which all are there; none, where such answers wait for the latest ones."""
        if self._join.has_asof:
            return dict.fromkeys(range(len(views)), np.zeros(0, np.int64))
        expansion = Expansion(self._group.algorithm, self._keyed, views)
        found = dict(enumerate(expansion.answers()))
        self.pairs += expansion.pairs
        return found

    def _waited(self, views: Sequence[View], due: Int64) -> list[Partial]:
        """Answers of these rows that have waited, by which aliases have a row in them."""
        keyed = (views[0].passes(due) & KEYED) != 0
        found, nobody = [_begun(views[0], due[keyed])], [_begun(views[0], due[~keyed])]
        for place, (step, member) in enumerate(zip(self._join.steps, self._steps, strict=True), 1):
            looking = StepExpansion(self._group.algorithm, member, views, step, place, self._type)
            found = [more for part in found for more in looking.joined(part)]
            self.pairs += looking.pairs
            nobody = nobody if step.has_nulls else []
        if not self._join.has_asof:
            found = [part for part in found if len(part.rows) < len(views)]
        return [part for part in [*found, *nobody] if len(part)]

    def _type(self, alias: str, name: str) -> pa.DataType:
        return type_of(self._join, self._group.schemas, alias, name)

    def _answered(self, views: Sequence[View], rows: Mapping[int, Int64], decided: Int64) -> pa.Table:
        """Rows of some aliases as a table; the others are NULL."""
        count, aliases = len(decided), self._join.aliases
        times = [views[place].whole("time", own) for place, own in rows.items()]
        columns = {"time": pa.array(np.maximum.reduce(times))}
        for place, alias in enumerate(aliases):
            there = place in rows
            numbers = (
                pa.array(views[place].whole("number", rows[place])) if there else pa.nulls(count, pa.int64())
            )
            columns[f"{alias}.number"] = numbers
        columns[DECIDED] = pa.array(decided)
        for column in self._join.select:
            place, name = aliases.index(column.alias), f"{column.alias}.{column.name}"
            if name not in columns:
                there = place in rows
                columns[name] = (
                    views[place].field(column.name, rows[place])
                    if there
                    else pa.nulls(count, self._type(column.alias, column.name))
                )
        return pa.table(columns)

    def _keep(self, views: Mapping[PoolKey, View], progress_us: int) -> None:
        self.progress_us = progress_us
        for pool, view in views.items():
            before = progress_us - self._group.needs[pool].retention_us
            wanted = view.fresh.time >= before
            if pool != self._pools[0]:
                wanted &= (view.fresh.passes & KEYED) != 0
            self.pools[pool].add(view.fresh.take(wanted))
            self.pools[pool].expire(before)
        self._check_limit()


def _begun(view: View, places: Int64) -> Partial:
    """Rows of the first alias, with nobody yet."""
    return Partial({0: places}, {0: view.whole("time", places)}, view.whole("key", places))


def _in_order(answers: pa.Table, aliases: Sequence[str]) -> pa.Table:
    """In the order in which they were decided."""
    numbers = [answers.column(f"{alias}.number").fill_null(_NOBODY).to_numpy() for alias in aliases]
    return answers.take(pa.array(np.lexsort([*numbers[::-1], answers.column(DECIDED).to_numpy()])))
