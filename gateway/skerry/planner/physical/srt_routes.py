"""Where a query need not go: what its condition leaves of the values that a semantic routing tree indexes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

from skerry.expressions.expression import Expr
from skerry.expressions.ranges import as_range
from skerry.planner.features.srt import CODES, Axis, Srt
from skerry.planner.model.clause import Clause
from skerry.planner.model.plans import MoteQuery
from skerry.planner.physical.program import fits
from skerry_protocol import programs
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate

#: Closed intervals of an attribute's integers; floats for what is unbounded only.
Intervals = tuple[tuple[float, float], ...]
_ALL: Intervals = ((-inf, inf),)
#: Codes from low to high; low above high: none.
Codes = tuple[int, int]
NO_CODES: Codes = (CODES - 1, 0)
ALL_CODES: Codes = (0, CODES - 1)
#: Clauses of queries that every mote has to hold.
_EVERYWHERE = {Aggregate.SRT, Aggregate.STORE, Aggregate.PAIRS}


@dataclass(frozen=True, slots=True)
class Route:
    """What a query asks of a tree: two intervals of its one attribute, or the extents along its two."""

    srt: Srt
    parts: tuple[Codes, Codes]

    def encode(self) -> tuple[int, ...]:
        """A Route of the protocol."""
        (low, high), (low2, high2) = self.parts
        fields = {"srt": self.srt.number, "low": low, "high": high, "low2": low2, "high2": high2}
        return tuple(programs.Route.build(fields))

    @property
    def share(self) -> float:
        """Of all codes, or pairs of codes, those that are asked for: 0..1."""
        first, second = (max(0, high - low + 1) / CODES for low, high in self.parts)
        return first + second if len(self.srt.axes) == 1 else first * second

    def takes(self, codes: tuple[int, ...]) -> bool:
        """Whether it asks for a mote with these codes, one for each axis."""
        hits = [
            low <= code <= high
            for (low, high), code in zip(self.parts, codes * (2 // len(codes)), strict=True)
        ]
        return all(hits) if len(self.srt.axes) == 2 else any(hits)


def intervals(where: Expr | None, attribute: int) -> Intervals:
    """The values of an attribute with which a condition can be true, sorted; () when with none."""
    if where is None:
        return _ALL
    if where.op is Op.AND:
        left, right = (intervals(arg, attribute) for arg in where.args)
        both = [(max(a, c), min(b, d)) for a, b in left for c, d in right]
        return tuple(sorted((low, high) for low, high in both if low <= high))
    if where.op is Op.OR:
        left, right = (intervals(arg, attribute) for arg in where.args)
        return _joined((*left, *right))
    bound = as_range(where)
    if bound is None or bound.attribute != attribute:
        return _ALL
    low = -inf if bound.low is None else bound.low
    high = inf if bound.high is None else bound.high
    return ((low, high),) if low <= high else ()


def _joined(parts: Iterable[tuple[float, float]]) -> Intervals:
    """Those that meet or touch become one."""
    found: list[tuple[float, float]] = []
    for low, high in sorted(parts):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def route_of(where: Expr | None, srt: Srt) -> Route | None:
    """What a condition asks of a tree; None when it may be anything."""
    per_axis = [_codes(intervals(where, axis.attribute), axis) for axis in srt.axes]
    if len(srt.axes) == 1:
        first, second = (*_two(per_axis[0]), NO_CODES, NO_CODES)[:2]
        route = Route(srt, (first, second))
        return route if first != ALL_CODES else None
    first, second = (_hull(codes) for codes in per_axis)
    return Route(srt, (first, second)) if (first, second) != (ALL_CODES, ALL_CODES) else None


def _codes(found: Intervals, axis: Axis) -> list[Codes]:
    """Intervals of codes, sorted; those that touch are one."""
    parts = [
        (0 if low == -inf else axis.code(int(low)), CODES - 1 if high == inf else axis.code(int(high)))
        for low, high in found
    ]
    return [(int(low), int(high)) for low, high in _joined(parts)]


def _two(codes: list[Codes]) -> list[Codes]:
    """At most two intervals around all: those with the least between them become one."""
    codes = list(codes)
    while len(codes) > 2:
        at = min(range(len(codes) - 1), key=lambda i: codes[i + 1][0] - codes[i][1])
        codes[at : at + 2] = [(codes[at][0], codes[at + 1][1])]
    return codes


def _hull(codes: list[Codes]) -> Codes:
    return (codes[0][0], codes[-1][1]) if codes else NO_CODES


def best_route(query: MoteQuery, srts: Iterable[Srt]) -> Route | None:
    """The route that leaves out most, by the codes; None when there is none, or every mote has to hold the query."""
    if any(clause.kind in _EVERYWHERE for clause in query.clauses):
        return None
    routes = [route for srt in srts if (route := route_of(query.where, srt)) is not None]
    return min(routes, key=lambda route: (route.share, route.srt.number), default=None)


def routed(query: MoteQuery, srts: Iterable[Srt]) -> MoteQuery:
    """The query with its best route, where its program has room for it."""
    route = best_route(query, srts)
    if route is None:
        return query
    clause = Clause(Aggregate.ROUTE, route.srt.name, values=route.encode())
    changed = replace(query, clauses=(*query.clauses, clause))
    return changed if fits(changed) else query


def routed_as(query: MoteQuery, other: MoteQuery) -> MoteQuery:
    """The query with the route of another, if that has one."""
    route = tuple(clause for clause in other.clauses if clause.kind is Aggregate.ROUTE)
    return replace(query, clauses=(*query.clauses, *route)) if route else query
