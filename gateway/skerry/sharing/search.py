"""Which needs share a mote query where motes have no room for a query for each: as few queries as there is room for, at little cost.

A step makes one query of two: aggregates of equal groups in one program, or rows from which the gateway computes aggregates. The cheapest
step is taken until what is left fits. Where no step is left, all ways to divide the needs are tried: a division that fits is found
whenever there is one, as long as there are not thousands of ways that nearly do (:data:`TRIED`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

from skerry.expressions.assembler import obstacle
from skerry.expressions.temporal import is_temporal
from skerry.planner.cost.energy import cost_of
from skerry.planner.model.columns import IN_EVERY_ROW, attribute_columns
from skerry.planner.model.plans import MoteQuery
from skerry.planner.physical.mote_memory import bytes_taken
from skerry.planner.physical.program import fits
from skerry.planner.physical.row_union import RowNeed
from skerry.sharing.groups import query_of
from skerry.sharing.needs import Kind, Need
from skerry_protocol.limits import FIELDS_MAXIMUM

#: Ways to put a need beside others that are tried where no step is left.
TRIED = 20_000
#: What it counts to change a query that runs, and to have epochs of a period that the query's does not divide: shares of its power.
_CHANGED, _BETWEEN = 0.05, 0.2


@dataclass(frozen=True, slots=True)
class Room:
    """What motes have left: ``slots`` for queries, ``bytes`` for what these take."""

    slots: int
    bytes: int

    def holds(self, bins: Sequence[Bin]) -> bool:
        """Whether it is enough."""
        return len(bins) <= self.slots and sum(bytes_taken(each.query()) for each in bins) <= self.bytes


@dataclass(frozen=True, slots=True)
class Bin:
    """One mote query, for the users of whole ``groups``, by number, and for ``needs``, among which those of groups that read rows need
    not be. ``rows``: what rows serve all of these; None: none do."""

    kind: Kind
    groups: tuple[int, ...]
    needs: tuple[Need, ...]
    rows: RowNeed | None
    #: Its query, where that has been made already.
    known: MoteQuery | None = field(default=None, compare=False)

    def query(self) -> MoteQuery:
        """What motes would run; of rows that many ask for, the condition is what it is at most."""
        if self.known is not None:
            return self.known
        if self.kind is Kind.ROWS:
            assert self.rows is not None
            return MoteQuery(
                self.rows.period_ms, False, False, attribute_columns(self.rows.attributes), self.rows.where
            )
        return _query(self.kind, self.needs)

    def query_for_needs(self) -> MoteQuery:
        """The same where it is for no whole groups."""
        return self.known or _query(self.kind, self.needs)


@lru_cache(maxsize=4096)
def _query(kind: Kind, needs: tuple[Need, ...]) -> MoteQuery:
    return query_of(kind, needs)


def bin_of(need: Need) -> Bin:
    """A query for one need, of the kind that serves it best."""
    return Bin(need.kind, (), (need,), need.rows())


def rows_together(parts: Sequence[RowNeed | None]) -> RowNeed | None:
    """Rows that serve all; None: a mote's row has not so many columns, or something needs more than rows."""
    known = [part for part in parts if part is not None]
    attributes = frozenset[int]().union(*(part.attributes for part in known))
    if len(known) < len(parts) or not known or len(attributes - IN_EVERY_ROW) > FIELDS_MAXIMUM:
        return None
    alike = all(part.where == known[0].where for part in known)
    return RowNeed(attributes, min(part.period_ms for part in known), known[0].where if alike else None)


def fits_mote(query: MoteQuery) -> bool:
    """Whether a mote takes the program: its columns, its bytes, and the stack of what it computes."""
    exprs = [*(column.expr for column in query.columns), query.where]
    computed = (expr.args[0] if is_temporal(expr) else expr for expr in exprs if expr is not None)
    return fits(query) and all(obstacle(expr) is None for expr in computed)


def as_rows(*bins: Bin) -> Bin | None:
    """One query of rows for all; None: there is none."""
    rows = rows_together([each.rows for each in bins])
    return None if rows is None else _together(Kind.ROWS, bins, rows)


def as_aggregates(*bins: Bin) -> Bin | None:
    """One query of aggregates for all; None: there is none."""
    needs = [need for each in bins for need in each.needs]
    if not needs or not all(need.aggregates() for need in needs) or any(b.kind is Kind.ROWS for b in bins):
        return None
    if len({need.plan.groups for need in needs}) > 1:
        return None
    if any(need.counts_epochs for need in needs) and len({need.shared.period_ms for need in needs}) > 1:
        return None
    made = _together(Kind.AGGREGATES, bins, rows_together([each.rows for each in bins]))
    return made if fits_mote(made.query()) else None


def _together(kind: Kind, bins: Sequence[Bin], rows: RowNeed | None) -> Bin:
    groups = tuple(number for each in bins for number in each.groups)
    needs = tuple(dict.fromkeys(need for each in bins for need in each.needs))
    return Bin(kind, groups, needs, rows)


def watts(query: MoteQuery, depth: float) -> float:
    """Power that the query takes of a mote on average, where motes are so many hops from the root: states are merged on the way, rows
    are passed on by all in between."""
    cost = cost_of(query)
    return replace(cost, radio=cost.radio * (1 if query.aggregate else max(1.0, depth))).watts


def fewer(bins: Sequence[Bin], room: Room, depth: float) -> list[Bin] | None:
    """As few of the queries as there is room for, made of these step by step; None: no step is left."""
    found = list(bins)
    while not room.holds(found):
        steps = list(_steps(found, short_of_slots=len(found) > room.slots))
        if not steps:
            return None
        made, of = min(steps, key=lambda step: _price(step[0], step[1], depth))
        found = [each for each in found if each not in of] + [made]
    return found


def _steps(bins: Sequence[Bin], *, short_of_slots: bool) -> Iterator[tuple[Bin, tuple[Bin, ...]]]:
    for pair in combinations(bins, 2):
        for made in (as_aggregates(*pair), as_rows(*pair)):
            if made is not None:
                yield made, pair
    if not short_of_slots:
        # Rows take no memory beside their program.
        for each in bins:
            made = as_rows(each) if each.kind is not Kind.ROWS else None
            if made is not None:
                yield made, (each,)


def _price(made: Bin, of: Sequence[Bin], depth: float) -> float:
    query = made.query()
    power = watts(query, depth)
    before = [(each, each.query()) for each in of]
    changed = sum(watts(was, depth) for each, was in before if each.groups and was != query)
    between = any(
        need.shared.period_ms % query.period_ms for need in made.needs if need.kind is not Kind.ROWS
    )
    return power * (1 + _BETWEEN * between) + _CHANGED * changed - sum(watts(was, depth) for _, was in before)


@dataclass(frozen=True, slots=True)
class Placed:
    """What runs: each query with the needs that it serves; ``free``: slots beside."""

    queries: tuple[tuple[MoteQuery, frozenset[Need]], ...]
    free: int

    def leads_to(self, bins: Sequence[Bin]) -> bool:
        """Whether motes can change over to these, one after the other: each begins while all that its users read still runs, which stops
        once all who read it have changed over."""
        left, ending = list(bins), list[frozenset[Need]]()
        for query, needs in self.queries:
            alike = (each for each in left if needs & {*each.needs} and each.query_for_needs() == query)
            goes_on = next(alike, None)
            if goes_on is None:
                ending.append(needs)
            else:
                left.remove(goes_on)
        return in_steps([frozenset(each.needs) for each in left], ending, self.free)


def in_steps(begin: Sequence[frozenset[Any]], ending: Sequence[frozenset[Any]], free: int) -> bool:
    """Whether queries for these can begin in some order, where each of those that end does so once all that it is for have one that has
    begun; ``free``: places beside."""
    tried = set[frozenset[int]]()

    def rest(left: frozenset[int]) -> bool:
        waiting = frozenset[Any]().union(*(begin[place] for place in left))
        places = free - (len(begin) - len(left)) + sum(not waiting & of for of in ending)
        if places >= len(left):
            return True
        if places < 1 or left in tried:
            return False
        tried.add(left)
        return any(rest(left - {place}) for place in left)

    return rest(frozenset(range(len(begin))))


def divided(needs: Iterable[Need], room: Room, before: Placed) -> list[Bin] | None:
    """Needs divided anew among as many queries as there is room for; None: they cannot be, or motes could not change over to what could
    serve them."""
    parts = _parts(needs)
    found = _Division(room).of(parts)
    if found is None or before.leads_to(found):
        return found
    return _Division(room, before).of(parts)


def _parts(needs: Iterable[Need]) -> list[Bin]:
    """What may go to different queries: each need by itself; one for which others' rows do goes with those."""
    parts: list[Bin] = []
    singles = map(bin_of, dict.fromkeys(needs))
    for single in sorted(singles, key=lambda part: (part.kind is not Kind.ROWS, -_width(part))):
        for place, other in enumerate(parts):
            if _is_within(single, other):
                rows = rows_together([other.rows, single.rows])
                parts[place] = replace(other, needs=(*other.needs, *single.needs), rows=rows)
                break
        else:
            parts.append(single)
    return parts


def _width(part: Bin) -> int:
    return FIELDS_MAXIMUM + 1 if part.rows is None else len(part.rows.attributes - IN_EVERY_ROW)


def _is_within(part: Bin, other: Bin) -> bool:
    """Whether the rows that one part cannot do without are all that another needs."""
    if other.kind is not Kind.ROWS or part.rows is None or other.rows is None:
        return False
    return part.rows.attributes - IN_EVERY_ROW <= other.rows.attributes


class _Division:
    """Tries one part after the other beside those before, and in a query of its own."""

    def __init__(self, room: Room, before: Placed | None = None) -> None:
        self._room, self._left, self._before = room, TRIED, before

    def of(self, parts: Sequence[Bin]) -> list[Bin] | None:
        return self._rest(list(parts), [])

    def _rest(self, parts: list[Bin], found: list[Bin]) -> list[Bin] | None:
        if not parts:
            reached = self._before is None or self._before.leads_to(found)
            return found if reached and self._room.holds(found) else None
        part, *rest = parts
        for place, made in self._ways(part, found):
            self._left -= 1
            if self._left < 0:
                return None
            more = [*found[:place], made, *found[place + 1 :]]
            if (done := self._rest(rest, more)) is not None:
                return done
        return None

    def _ways(self, part: Bin, found: Sequence[Bin]) -> Iterator[tuple[int, Bin]]:
        seen: set[object] = set()
        for place, other in enumerate(found):
            for made in (as_aggregates(other, part), as_rows(other, part)):
                if made is None or made.kind is not other.kind:
                    continue
                # Queries of rows with the same columns are alike, but for what has to change for them.
                alike = made.rows if made.kind is Kind.ROWS and self._before is None else made.needs
                if alike not in seen:
                    seen.add(alike)
                    yield place, made
        if len(found) < self._room.slots:
            yield len(found), part
            turned = as_rows(part) if part.kind is not Kind.ROWS else None
            if turned is not None:
                yield len(found), turned
