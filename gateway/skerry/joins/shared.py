"""Joins that meet the same rows by the same keys: rows are brought together once, for the largest windows, and each join takes its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skerry.joins.conditions import evaluate
from skerry.joins.expansion import Expansion, Member
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
        self._places = expansion.answers()
        self.pairs = expansion.pairs
        self._distance = distance
        self._times = [view.whole("time", own) for view, own in zip(views, self._places, strict=True)]
        self._numbers = [view.whole("number", own) for view, own in zip(views, self._places, strict=True)]
        self._passes = [view.passes(own) for view, own in zip(views, self._places, strict=True)]

    def of(self, member: Member) -> list[Int64]:
        """By alias the places of a member's rows in its answers."""
        own: Bool = np.ones(len(self._places[0]), np.bool_)
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
        places = [rows[own] for rows in self._places]
        for condition in member.conditions:
            if not len(places[0]):
                break

            def column(alias: str, name: str, places: list[Int64] = places) -> pa.Array:
                place = member.aliases.index(alias)
                return self._views[place].field(name, places[place])

            values = evaluate(condition, column, len(places[0]))
            true = values.fill_null(False).to_numpy(zero_copy_only=False)
            places = [rows[true] for rows in places]
        return places
