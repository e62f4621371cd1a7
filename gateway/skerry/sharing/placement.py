"""Which users share which mote query: chosen once for all networks of a gateway, apart from how these change over (``demand``).

While motes have room for a query more, a need has one with those that share it, and nobody else's changes. When they have not, needs
share what costs least (:mod:`skerry.sharing.search`). One slot of the motes is kept for changes: what others read runs on until all motes
have what takes its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from skerry.planner.model.columns import IN_EVERY_ROW
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.fast_sampling import is_fast
from skerry.planner.physical.mote_memory import MEMORY_BYTES, bytes_taken
from skerry.planner.physical.row_union import RowNeed
from skerry.sharing.groups import Group, query_of
from skerry.sharing.needs import ONCE_WAITS_MS, Kind, Need, need_of
from skerry.sharing.search import (
    Bin,
    Placed,
    Room,
    as_aggregates,
    as_rows,
    bin_of,
    divided,
    fewer,
    fits_mote,
    rows_together,
    watts,
)
from skerry.sql.errors import QueryError
from skerry_protocol.limits import FIELDS_MAXIMUM, PROGRAM_MAXIMUM, QUERIES_MAXIMUM

#: A share of the power that a change has to save where nobody needs it.
_WORTH = 0.1
#: Classes of aggregates, of those that the gateway computes from rows, that are looked at for whether motes had better compute them.
_CLASSES = 16
#: Needs of a group among which they are looked for.
_LOOKED_AT = 256


@dataclass(slots=True)
class Changes:
    """What has changed since they were looked at: groups by number, also such as have gone, and users who have another one."""

    groups: set[int] = field(default_factory=set)
    users: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Proposal:
    """How a need would be served: ``bins`` are the mote queries that change or begin, ``target`` is its own. ``anew``: they serve all
    needs that share anything, whoever shared with whom before; else each is for whole groups, of which one goes on in it."""

    need: Need
    bins: tuple[Bin, ...]
    target: Bin
    anew: bool = False

    @property
    def changes_nothing(self) -> bool:
        """Whether the need comes to one group, and all others stay what they are."""
        return not self.anew and len(self.bins) == 1 and len(self.target.groups) == 1


class Placement:
    """Users in groups. ``depth``: hops from a mote to the root, on average."""

    def __init__(self, depth: float = 1.0) -> None:
        self.depth = depth
        #: Bytes that motes have for queries, as far as is known.
        self.memory = MEMORY_BYTES
        self._groups: dict[int, Group] = {}
        self._places: dict[str, int] = {}
        self._last = 0
        self._watching: list[Changes] = []
        #: Whether somebody has gone since :meth:`improve` found nothing.
        self._loose = False

    # ---- what there is ----

    def watch(self) -> Changes:
        """What changes from now on; the caller empties it."""
        changes = Changes()
        self._watching.append(changes)
        return changes

    def __contains__(self, user: str) -> bool:
        return user in self._places

    def users(self) -> Iterator[str]:
        """All of them."""
        return iter(self._places)

    def need(self, user: str) -> Need:
        """What a user needs. Raises KeyError for an unknown one."""
        return self.group_of(user).users[user]

    def group_of(self, user: str) -> Group:
        """With whom a user shares. Raises KeyError for an unknown one."""
        return self._groups[self._places[user]]

    def groups(self) -> Mapping[int, Group]:
        """All of them, by number."""
        return self._groups

    def query(self, each: Bin) -> MoteQuery:
        """What motes are to run for it."""
        groups, into = [self._groups[number] for number in each.groups], self._into(each)
        needs = dict.fromkeys(need for group in groups if group is not into for need in group.needs)
        needs |= dict.fromkeys(each.needs)
        return query_of(each.kind, [*needs]) if into is None else into.query_with(needs)

    def into(self, proposal: Proposal) -> Group | None:
        """The group whose query goes on, or is followed, as that which serves the newcomer; None: there is none."""
        return None if proposal.anew else self._into(proposal.target)

    def affected(self, proposal: Proposal) -> list[tuple[Group, Bin]]:
        """The groups that the proposal changes, with what serves them then, or, of those who are divided, the newcomer."""
        if proposal.anew:
            return [(group, proposal.target) for group in self._movable()]
        return [(self._groups[number], each) for each in proposal.bins for number in each.groups]

    def _into(self, each: Bin) -> Group | None:
        """The group that goes on with it: the largest, as its users need not change over where its query is the same."""
        alike = [g for g in map(self._groups.__getitem__, each.groups) if g.kind is each.kind]
        return max(alike, key=lambda group: len(group.users), default=None)

    # ---- who comes and goes ----

    def proposed(self, plan: QueryPlan, user: str = "") -> Proposal:
        """How a plan would be served if it were asked now. Raises QueryError where motes have no room for it, which names what is short."""
        need = need_of(plan, user)
        served = self._served_as_it_is(need) or self._joined(need)
        if served is not None:
            return Proposal(need, (served,), served)
        alone = bin_of(need)
        # What is ONCE is over before a change that comes meanwhile has waited for long.
        if self._holds([*map(self._bin, self._groups.values()), alone], once=need.is_once):
            return Proposal(need, (alone,), alone)
        return self._crowded(need)

    def add(self, user: str, plan: QueryPlan) -> Proposal:
        """A user comes. Raises QueryError as :meth:`proposed`; then nothing has changed."""
        if user in self._places:
            raise ValueError(f"user {user!r} has a query already: remove it first")
        proposal = self.proposed(plan, user)
        places = self._divide(proposal.bins, self._movable()) if proposal.anew else self._join(proposal.bins)
        self._enter(user, proposal.need, places[proposal.bins.index(proposal.target)])
        return proposal

    def remove(self, user: str) -> None:
        """A user goes. Raises KeyError for an unknown one."""
        group = self.group_of(user)
        self._leave(user, group)
        self._loose = True

    def part(self, user: str) -> None:
        """A user shares with nobody any more: motes refuse what he and others ask together. Raises KeyError for an unknown one."""
        group = self.group_of(user)
        need = replace(group.users[user], kind=Kind.OWN, share=("user", user))
        self._leave(user, group)
        self._enter(user, need, self._begin(Kind.OWN))

    def improve(self) -> bool:
        """One change that saves power, where somebody has gone; whether there was one."""
        if not self._loose:
            return False
        best = min(self._savings(), key=lambda saving: saving[0], default=None)
        if best is None:
            self._loose = False
            return False
        _, bins, split = best
        if split is None:
            self._join(bins)
        else:
            self._divide(bins, [split])
        return True

    # ---- ways to serve a need ----

    def _served_as_it_is(self, need: Need) -> Bin | None:
        """A query that has all that it needs."""
        for group in self._groups.values():
            if self._is_of(need, group) and self._suits(need, group) and self._unchanged(group, need):
                return self._with(group, need)
        return None

    def _is_of(self, need: Need, group: Group) -> bool:
        """Whether the need could be one of the group's."""
        match group.kind:
            case Kind.OWN:
                return need.kind is Kind.OWN and need.share == group.share
            case Kind.ROWS:
                return need.rows() is not None and not need.plan.aggregate and not need.plan.temporal
        return need.aggregates()

    @staticmethod
    def _suits(need: Need, group: Group) -> bool:
        """Whether each of its epochs has a sample of the group's that begins with it, or, of rows, any."""
        period_ms = group.query().period_ms
        if need.is_once:
            return period_ms <= ONCE_WAITS_MS
        if group.kind is not Kind.AGGREGATES:
            return True
        needed_ms = need.plan.period_ms
        return needed_ms == period_ms if need.counts_epochs else needed_ms % period_ms == 0

    def _unchanged(self, group: Group, need: Need) -> bool:
        if group.kind is Kind.AGGREGATES and as_aggregates(self._bin(group), bin_of(need)) is None:
            return False
        try:
            return group.query_with([need]) == group.query()
        except QueryError:
            return False

    def _joined(self, need: Need) -> Bin | None:
        """A query that those share who need alike, with what this one needs more."""
        found: list[Bin] = []
        for group in self._groups.values():
            if group.kind is not need.kind or group.share != need.share:
                continue
            made = self._with(group, need)
            others = [self._bin(other) for other in self._groups.values() if other is not group]
            if fits_mote(made.query()) and self._holds([*others, made]):
                found.append(made)
        return min(found, key=lambda made: watts(made.query(), self.depth), default=None)

    def _crowded(self, need: Need) -> Proposal:
        """A query that others share, or one of its own in a place that others make."""
        alone, rows = bin_of(need), need.rows()
        movable = self._movable()
        before = [self._bin(group) for group in movable]
        pinned = [self._bin(group) for group in self._groups.values() if group not in movable]
        flexible = need.kind is not Kind.OWN or rows is not None
        room = self._room(pinned if flexible else [*pinned, alone])
        if room.slots >= 0:
            for way in self._ways(need) if flexible else [None]:
                found = fewer(before if way is None else [*before, way], room, self.depth)
                if found is not None:
                    return self._told(need, [each for each in found if each not in before], flexible)
            needs = [other for group in movable for other in group.needs]
            there = tuple((group.query(), frozenset(group.needs)) for group in movable)
            lasting = [each for each in [*before, *pinned] if not _is_once(each)]
            known = Placed(there, QUERIES_MAXIMUM - len(lasting))
            found = divided([*needs, need] if flexible else needs, room, known)
            if found is not None:
                return replace(self._told(need, found, flexible), anew=True)
        lasting = [each for each in [*before, *pinned] if not _is_once(each)]
        if need.is_once and self._holds([*lasting, alone], once=True):
            # It waits until others that are ONCE are over.
            return Proposal(need, (alone,), alone)
        raise self._shortage(need, room, pinned)

    @staticmethod
    def _ways(need: Need) -> list[Bin]:
        """Queries that could serve it, first with others."""
        alone = bin_of(need)
        if need.kind is not Kind.OWN:
            return [alone]
        return [way for way in (as_aggregates(alone), as_rows(alone), alone) if way is not None]

    @staticmethod
    def _told(need: Need, bins: list[Bin], flexible: bool) -> Proposal:
        if not flexible:
            return Proposal(need, (*bins, bin_of(need)), bin_of(need))
        return Proposal(need, tuple(bins), next(each for each in bins if need in each.needs))

    # ---- room ----

    def _movable(self) -> list[Group]:
        """Those whose users may come to share with others."""
        return [group for group in self._groups.values() if group.kind is not Kind.OWN]

    @staticmethod
    def _bin(group: Group) -> Bin:
        """A group as it is."""
        query = group.query()
        if group.kind is Kind.ROWS:
            rows = RowNeed(attributes_read(query), query.period_ms, query.where)
            return Bin(Kind.ROWS, (group.number,), (), rows, query)
        needs = tuple(group.needs)
        return Bin(group.kind, (group.number,), needs, rows_together([need.rows() for need in needs]), query)

    def _with(self, group: Group, need: Need) -> Bin:
        """The same with a need more, of the group's kind."""
        before, query = self._bin(group), group.query_with([need])
        rows = rows_together([before.rows, need.rows()])
        return Bin(group.kind, before.groups, (*before.needs, need), rows, query)

    def _holds(self, bins: Sequence[Bin], *, once: bool = False) -> bool:
        """Whether motes have room for these, and for a change of one. ``once``: for all at this moment; else what is ONCE goes soon."""
        lasting = bins if once else [each for each in bins if not _is_once(each)]
        kept = any(map(_may_change, bins))
        slots = QUERIES_MAXIMUM - (kept and not once)
        return Room(slots, self.memory - PROGRAM_MAXIMUM * kept).holds(lasting)

    def _room(self, pinned: Sequence[Bin]) -> Room:
        """What is left for those that may share, beside others."""
        lasting = [each for each in pinned if not _is_once(each)]
        taken = sum(bytes_taken(each.query()) for each in lasting)
        return Room(QUERIES_MAXIMUM - 1 - len(lasting), self.memory - PROGRAM_MAXIMUM - taken)

    def _shortage(self, need: Need, room: Room, pinned: Sequence[Bin]) -> QueryError:
        """What is short."""
        lasting = [each for each in pinned if not _is_once(each)]
        alone = need.kind is Kind.OWN and need.rows() is None
        shared = bool(self._movable()) or not alone
        if room.slots < (1 if shared else -1):
            kept = ", and one place is kept for changes" if shared else ""
            run = f"{len(lasting)} that nobody else can share run already"
            summary = f"motes run at most {QUERIES_MAXIMUM} queries at once, and {run}{kept}"
            hint = (
                "stop a query of a storage point, of events, with QUEUE or LIFETIME, or of windows on motes"
            )
            return QueryError(summary, hint)
        if alone and (not self._movable() or room.bytes < 0):
            taken = bytes_taken(bin_of(need).query())
            summary = f"the query takes {taken} bytes of a mote's memory, and others leave {max(0, room.bytes + taken)}"
            return QueryError(summary, "stop a storage point, or windows, or ask for shorter ones")
        rows = [*(self._bin(group).rows for group in self._movable()), need.rows()]
        attributes = frozenset[int]().union(*(part.attributes for part in rows if part is not None))
        width = len(attributes - IN_EVERY_ROW)
        left = "1 query" if room.slots == 1 else f"{room.slots} queries"
        asked = f"what users ask together needs {width} column{'s' * (width != 1)}"
        summary = f"{asked}, which motes have no room for beside what nobody else can share"
        hint = (
            f"it would have to fit {left} of {FIELDS_MAXIMUM} columns or cells each, and {max(0, room.bytes)} bytes:"
            " ask for less, or stop a query of a storage point, of events or of windows on motes"
        )
        return QueryError(summary, hint)

    # ---- changes ----

    def _join(self, bins: Sequence[Bin]) -> list[Group]:
        """Groups come together; those that these queries are for."""
        places = []
        for each in bins:
            groups = [self._groups[number] for number in each.groups]
            into = self._into(each) or self._begin(each.kind)
            for group in groups:
                for user, need in list(group.users.items()) if group is not into else ():
                    self._leave(user, group)
                    self._enter(user, need, into)
            places.append(into)
        return places

    def _divide(self, bins: Sequence[Bin], groups: Sequence[Group]) -> list[Group]:
        """The users of some groups divided anew; those that these queries are for. Most stay in theirs."""
        place_of = {need: place for place, each in enumerate(bins) for need in each.needs}
        users = [(user, need, group) for group in groups for user, need in group.users.items()]
        counts = Counter((place_of[need], group.number) for _, need, group in users)
        queries = [each.query_for_needs() for each in bins]
        into: dict[int, Group] = {}
        # What runs for a query goes on for it.
        for place, number in sorted(
            counts, key=lambda pair: (queries[pair[0]] != self._groups[pair[1]].query(), -counts[pair])
        ):
            group = self._groups[number]
            if place not in into and group not in into.values() and group.kind is bins[place].kind:
                into[place] = group
        into |= {place: self._begin(each.kind) for place, each in enumerate(bins) if place not in into}
        for user, need, group in users:
            if into[place_of[need]] is not group:
                self._leave(user, group)
                self._enter(user, need, into[place_of[need]])
        return [into[place] for place in range(len(bins))]

    def _begin(self, kind: Kind) -> Group:
        self._last += 1
        group = self._groups[self._last] = Group(self._last, kind)
        return group

    def _enter(self, user: str, need: Need, group: Group) -> None:
        group.add(user, need)
        self._groups[group.number] = group
        self._places[user] = group.number
        self._note(group, user)

    def _leave(self, user: str, group: Group) -> None:
        group.remove(user)
        del self._places[user]
        if not group.users:
            del self._groups[group.number]
        self._note(group, user)

    def _note(self, group: Group, user: str) -> None:
        for changes in self._watching:
            changes.groups.add(group.number)
            changes.users.add(user)

    def _savings(self) -> Iterator[tuple[float, tuple[Bin, ...], Group | None]]:
        """Changes that save power: by how much, the queries, and the group that they divide."""
        for pair in combinations([self._bin(g) for g in self._movable() if g.kind is Kind.ROWS], 2):
            made = as_rows(*pair)
            before = sum(watts(each.query(), self.depth) for each in pair)
            if made is not None and (saved := watts(made.query(), self.depth) - before) < -_WORTH * before:
                yield saved, (made,), None
        for group in self._movable():
            yield from ((saved, bins, group) for saved, bins in self._apart(group))

    def _apart(self, group: Group) -> Iterator[tuple[float, tuple[Bin, ...]]]:
        """What it would save if motes computed aggregates of the group in a query of their own."""
        others = [self._bin(other) for other in self._groups.values() if other is not group]
        classes: dict[Hashable, list[Need]] = {}
        for need in group.needs if len(group.needs) <= _LOOKED_AT else ():
            if need.kind is Kind.AGGREGATES:
                classes.setdefault(need.share, []).append(need)
        before = watts(group.query(), self.depth)
        for mine in list(classes.values())[:_CLASSES] if len(classes) > 1 or group.kind is Kind.ROWS else []:
            own = as_aggregates(*map(bin_of, mine))
            if own is None:
                continue
            left = [need for need in group.needs if need not in mine]
            together = as_rows if group.kind is Kind.ROWS else as_aggregates
            rest = [made] if left and (made := together(*map(bin_of, left))) is not None else []
            after = sum(watts(each.query(), self.depth) for each in [own, *rest])
            if after - before < -_WORTH * before and self._holds([*others, own, *rest]):
                yield after - before, (own, *rest)

    # ---- kept over a restart ----

    @property
    def last_group(self) -> int:
        """The number of a group that was given last."""
        return self._last

    def rows(self) -> list[dict[str, Any]]:
        """The groups, to be kept."""
        return [{"number": number, "kind": group.kind.value} for number, group in self._groups.items()]

    def place(self, user: str) -> int | None:
        """The number of a user's group; None: there is no such user."""
        return self._places.get(user)

    def restore(
        self,
        groups: Iterable[Mapping[str, Any]],
        last_group: int,
        memory: int,
        places: Mapping[str, int],
        plans: Mapping[str, QueryPlan],
    ) -> None:
        """What :meth:`rows`, :attr:`last_group`, :attr:`memory` and :meth:`place` said; ``plans`` of the users: who has none any more has
        gone."""
        kinds = {row["number"]: Kind(row["kind"]) for row in groups}
        self._last, self.memory = last_group, memory
        for user, number in places.items():
            if user not in plans:
                self._loose = True
                continue
            group = self._groups.get(number) or Group(number, kinds[number])
            self._enter(user, need_of(plans[user], user), group)


def attributes_read(query: MoteQuery) -> frozenset[int]:
    """The attributes that the columns of a query of rows are."""
    operands = (column.expr.operand for column in query.columns if column.expr is not None)
    return frozenset(operand for operand in operands if operand is not None)


def _may_change(each: Bin) -> bool:
    """Whether others may come to share it, so that motes hold what takes its place beside it for a while."""
    return each.kind is not Kind.OWN or any(
        is_fast(need.plan.period_ms) or need.plan.at_once for need in each.needs
    )


def _is_once(each: Bin) -> bool:
    return each.kind is Kind.OWN and all(need.is_once for need in each.needs)
