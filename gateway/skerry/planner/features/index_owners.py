"""Owners of an index that change: who dies lends his zone to those next to it, and who comes, or comes back, has one of his own again.

Source: DIM 2004, 3.1, whose zones are taken over, and split, in the same way. Motes hand tuples over by themselves, in their time:
whoever may have some is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

from skerry.index.code import BITS, Field, motes_code
from skerry.index.placement import Position, field_of
from skerry.planner.features.indexing import Index, IndexPart

#: Motes that store, or have stored, of which motes are told in a part.
_TOLD_MAXIMUM = BITS


def amended(
    index: Index,
    there: Mapping[int, Position],
    now: float,
    fits: Callable[[Index], bool],
    followed: Container[int] = (),
) -> Index:
    """The index with its owners as they are ``now``, UTC in s. ``there``: all motes that can store and are there, and where they stand, in
    dm. ``fits``: whether a program has room for it: else those who have come last have no part in it. The revision is another where motes
    are to be told. ``followed``: motes all of whose tuples are their own by the owners as ``index`` has them."""
    known, made = set(index.holding), index
    for node in sorted(there.keys() - known):
        made = _with(made, node, there[node], now)
    long_ago = now - index.keep_ms / 1000
    parts = (
        _settled(_followed(part, there, now), now if _has_followed(part, there, followed) else long_ago)
        for part in made.parts
    )
    made = replace(made, parts=tuple(parts))
    while not fits(made):
        fewer = _without_last(made.parts, known, now)
        if fewer is None:
            return index
        made = replace(made, parts=fewer)
    same = list(map(_told, made.parts)) == list(map(_told, index.parts))
    return made if same else replace(made, revision=(index.revision + 1) % 256)


def _told(part: IndexPart) -> tuple[Sequence[tuple[int, Position]], int, int]:
    """What motes are told of a part."""
    return part.told, len(part.owners), len(part.away)


def _followed(part: IndexPart, there: Mapping[int, Position], now: float) -> IndexPart:
    """The part with those that it knows where they are; as it was, where nobody would be left to store."""
    owners = {node: place for node, place in part.owners.items() if there.get(node) == place}
    away = {**part.away, **{node: place for node, place in part.owners.items() if node not in owners}}
    taken = {_code(owners, away, place) for place in owners.values()}
    added: dict[int, Position] = {}
    for node in (*part.added, *sorted({*away, *part.lost} - part.added.keys())):
        place = there.get(node)
        if place is not None and (code := _code(owners, away, place)) not in taken:
            taken.add(code)
            added[node] = place
    if not owners and not added:
        return part
    lost = frozenset({*part.lost, *part.added} - added.keys())
    made = replace(part, owners=owners, away=away, added=added, lost=lost)
    return _since(made, part, now)


def _since(made: IndexPart, before: IndexPart, now: float) -> IndexPart:
    """Who has become something else has done so now."""
    since = {
        node: before.since.get(node, now) if _is_same(node, made, before) else now
        for node in made.holding
        if node not in made.owners
    }
    return replace(made, since=since)


def _is_same(node: int, one: IndexPart, other: IndexPart) -> bool:
    return (one.added.get(node), node in one.away, node in one.lost) == (
        other.added.get(node),
        node in other.away,
        node in other.lost,
    )


def _has_followed(part: IndexPart, there: Mapping[int, Position], followed: Container[int]) -> bool:
    """Whether no tuple of a part is anywhere but with its owner: all that may have some are there, and say so."""
    current = all(there.get(node) == place for node, place in part.storing.items())
    return current and not part.lost and all(node in there and node in followed for node in part.holding)


def _settled(part: IndexPart, long_ago: float) -> IndexPart:
    """The part without what has been so since before all tuples that are kept were sampled, or since before they followed, where that
    leaves its field what it is."""
    for node, since in part.since.items():
        if since >= long_ago:
            continue
        owners, away, added = dict(part.owners), dict(part.away), dict(part.added)
        away.pop(node, None)
        if node in added:
            owners[node] = added.pop(node)
        spans = {*owners.values(), *away.values()}
        if spans and field_of(list(spans)).sides == _field(part.owners, part.away).sides:
            left = {other: moment for other, moment in part.since.items() if other != node}
            part = replace(part, owners=owners, away=away, added=added, lost=part.lost - {node}, since=left)
    return part


def _without_last(
    parts: Sequence[IndexPart], known: Container[int], now: float
) -> tuple[IndexPart, ...] | None:
    """Without whoever was added last, where others store the part; of those that come together one that has stored nothing before one that
    has. ``known``: those that have a part in the index already. None: there is no such."""

    def lateness(added: tuple[IndexPart, int]) -> tuple[float, bool, int]:
        part, node = added
        return part.since[node], node not in known, node

    spare = [(part, node) for part in parts if len(part.storing) > 1 for node in part.added]
    if not spare:
        return None
    part, last = max(spare, key=lateness)
    added = {node: place for node, place in part.added.items() if node != last}
    lost = part.lost | {last} if last in known else part.lost
    made = _since(replace(part, added=added, lost=lost), part, now)
    return tuple(made if one is part else one for one in parts)


def _with(index: Index, node: int, place: Position, now: float) -> Index:
    """The index with one more mote that stores, in the part that lies nearest; as it is, where its zone is another's, or there are too
    many."""
    part = min(index.parts, key=lambda part: _distance(part, place))
    taken = {_code(part.owners, part.away, other) for other in part.storing.values()}
    if _code(part.owners, part.away, place) in taken or len(part.told) == _TOLD_MAXIMUM:
        return index
    more = replace(part, added={**part.added, node: place}, since={**part.since, node: now})
    return replace(index, parts=tuple(more if one is part else one for one in index.parts))


def _distance(part: IndexPart, place: Position) -> int:
    """Of a place from the part's field, squared."""
    left, bottom, right, top = _field(part.owners, part.away).sides
    across = max(left - place[0], 0, place[0] - right)
    up = max(bottom - place[1], 0, place[1] - top)
    return across * across + up * up


def _code(owners: Mapping[int, Position], away: Mapping[int, Position], place: Position) -> int:
    return motes_code().zone_code(_field(owners, away), *place)


def _field(owners: Mapping[int, Position], away: Mapping[int, Position]) -> Field:
    return field_of([*owners.values(), *away.values()])
