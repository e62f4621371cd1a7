"""Joins that meet the same rows by the same keys: rows are brought together once, for the largest windows, and each join takes its own.

What several joins have in common is reckoned once, too: the order of answers, columns, and the conditions that more than one has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skerry.joins.conditions import Condition, encode, evaluate, renamed
from skerry.joins.expansion import Expansion, Member
from skerry.joins.join import Join
from skerry.joins.pool import View
from skerry.joins.progress import Bool, Int64
from skerry.joins.rows import KEYED
from skerry.joins.windows import UNBOUNDED


class SharedMatches:
    """What several members have in common, over views in the order of their aliases. Only where rows meet by key: without one, members'
    own conditions keep fewer rows from meeting than windows do."""

    def __init__(self, members: Sequence[Member], views: Sequence[View]) -> None:
        self._views = views
        count = len(views)
        distance = [
            [max(member.distance[one][other] for member in members) for other in range(count)]
            for one in range(count)
        ]
        names = tuple(str(place) for place in range(count))
        largest = Member(names, distance, (KEYED,) * count, [])
        expansion = Expansion("HW", largest, views)
        self.pairs = expansion.pairs
        self._distance = distance
        self._places, self._numbers, self._times = _in_order(views, expansion.answers())
        self._last: Int64 = np.maximum.reduce(self._times)
        self._passes = [view.passes(own) for view, own in zip(views, self._places, strict=True)]
        self._columns: dict[tuple[int, str], pa.Array] = {}
        self._users = Counter(
            _form(member, condition) for member in members for condition in member.conditions
        )
        self._true: dict[bytes, Bool] = {}

    def table(self, join: Join, member: Member) -> pa.Table:
        """A member's answers, as :func:`skerry.joins.answers.table_of` has them."""
        chosen = self._chosen(member)
        columns = {"time": pa.array(self._last[chosen])}
        columns |= {
            f"{alias}.number": pa.array(own[chosen])
            for alias, own in zip(join.aliases, self._numbers, strict=True)
        }
        taken = pa.array(chosen)
        for column in join.select:
            name = f"{column.alias}.{column.name}"
            if name not in columns:
                place = join.aliases.index(column.alias)
                columns[name] = self._column(place, column.name).take(taken)
        return pa.table(columns)

    def _chosen(self, member: Member) -> Int64:
        """Which of all rows that met are a member's answers."""
        own: Bool = np.ones(len(self._last), np.bool_)
        for passes, bit in zip(self._passes, member.bits, strict=True):
            own &= (passes & bit) != 0
        if member.since:
            for numbers in self._numbers:
                own &= numbers >= member.since
        for one, times in enumerate(self._times):
            for other in range(one):
                reach = member.distance[one][other]
                if reach < min(self._distance[one][other], UNBOUNDED):
                    own &= np.abs(times - self._times[other]) <= reach
        if not own.any():
            # A field that no row has which met has no type, and conditions on it cannot be evaluated.
            return np.zeros(0, np.int64)
        alone = []
        for condition in member.conditions:
            form = _form(member, condition)
            if self._users[form] > 1:
                own &= self._true_of_all(member, condition, form)
            else:
                alone.append(condition)
        chosen = np.flatnonzero(own)
        for condition in alone:
            if len(chosen):
                chosen = chosen[self._true_of(member, condition, chosen)]
        return chosen

    def _true_of_all(self, member: Member, condition: Condition, form: bytes) -> Bool:
        if form not in self._true:
            self._true[form] = self._true_of(member, condition, None)
        return self._true[form]

    def _true_of(self, member: Member, condition: Condition, chosen: Int64 | None) -> Bool:
        """Of the chosen rows, None: of all."""
        length = len(self._last) if chosen is None else len(chosen)

        def column(alias: str, name: str) -> pa.Array:
            whole = self._column(member.aliases.index(alias), name)
            return whole if chosen is None else whole.take(pa.array(chosen))

        values = evaluate(condition, column, length).fill_null(False)
        found: Bool = values.to_numpy(zero_copy_only=False)
        return found

    def _column(self, place: int, name: str) -> pa.Array:
        """A field's values in all rows that met."""
        if (place, name) not in self._columns:
            self._columns[place, name] = self._views[place].field(name, self._places[place])
        return self._columns[place, name]


def _form(member: Member, condition: Condition) -> bytes:
    """The same for members that call their aliases otherwise."""
    return encode(renamed(condition, {alias: str(place) for place, alias in enumerate(member.aliases)}))


def _in_order(views: Sequence[View], places: list[Int64]) -> tuple[list[Int64], list[Int64], list[Int64]]:
    """By alias places, numbers and times, in the order of answers: that of the row that came last, then of all numbers."""
    numbers = [view.whole("number", own) for view, own in zip(views, places, strict=True)]
    order = np.lexsort([*numbers[::-1], np.maximum.reduce(numbers)])
    places, numbers = [own[order] for own in places], [own[order] for own in numbers]
    return places, numbers, [view.whole("time", own) for view, own in zip(views, places, strict=True)]
