"""Groups: users whom one mote query serves, and what that query has to be."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from skerry.planner.model.columns import projection
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.fast_sampling import is_fast
from skerry.planner.physical.merge import merge
from skerry.planner.physical.row_union import RowNeed, RowUnion
from skerry.sharing.needs import Kind, Need
from skerry.sharing.shared_pulses import family, serve
from skerry_protocol.codes import Aggregate


def query_of(kind: Kind, needs: Sequence[Need]) -> MoteQuery:
    """The mote query of a group with these needs, one at least; it may be too large for a mote. Raises QueryError where a mote's radio
    could not carry its rows."""
    if kind is Kind.ROWS:
        return RowUnion(map(_row_need, needs)).query()
    plans = [need.shared if kind is Kind.AGGREGATES else need.plan for need in needs]
    return merge(plans) if family(plans[0]) is None else serve(plans)


def _row_need(need: Need) -> RowNeed:
    found = need.rows()
    if found is None:
        raise ValueError(f"no rows serve {need.plan.text!r}")
    return found


@dataclass(slots=True)
class Group:
    """``users`` in the order in which they came; ``needs``: how many have each."""

    number: int
    kind: Kind
    users: dict[str, Need] = field(default_factory=dict)
    needs: dict[Need, int] = field(default_factory=dict)
    _rows: RowUnion = field(default_factory=RowUnion)
    _query: MoteQuery | None = None

    @property
    def share(self) -> Hashable:
        """What its needs have in common; None: they have not."""
        found = {need.share for need in self.needs} if self.kind is Kind.AGGREGATES else None
        if found is not None and len(found) > 1:
            return None
        return next(iter(self.needs)).share if self.needs and self.kind is not Kind.ROWS else ()

    def add(self, user: str, need: Need) -> None:
        """A user comes."""
        self.users[user] = need
        self.needs[need] = self.needs.get(need, 0) + 1
        if self.needs[need] == 1:
            self._query = None
            if self.kind is Kind.ROWS:
                self._rows.add(_row_need(need))

    def remove(self, user: str) -> None:
        """A user goes."""
        need = self.users.pop(user)
        self.needs[need] -= 1
        if not self.needs[need]:
            del self.needs[need]
            self._query = None
            if self.kind is Kind.ROWS:
                self._rows.remove(_row_need(need))

    def query(self) -> MoteQuery:
        """What motes are to run for all of them."""
        if self._query is None:
            self._query = self._rows.query() if self.kind is Kind.ROWS else query_of(self.kind, [*self.needs])
        return self._query

    def query_with(self, needs: Iterable[Need]) -> MoteQuery:
        """The same with some needs more. Raises QueryError as :func:`query_of`."""
        more = [need for need in needs if need not in self.needs]
        if not more:
            return self.query()
        if self.kind is Kind.ROWS:
            return self._rows.with_(map(_row_need, more))
        return query_of(self.kind, [*self.needs, *more])

    def plans(self) -> list[QueryPlan]:
        """Its users' plans."""
        return [need.plan for need in self.users.values()]


def view_of(plan: QueryPlan, query: MoteQuery) -> MoteQuery | None:
    """What the gateway makes for a plan of the rows, or states, of a mote query that others share, as if motes ran it beside; None: the
    plan reads those themselves."""
    if plan.clauses or family(plan) is not None:
        return None
    if plan.aggregate:
        own = merge([replace(plan, within=None)])
        read_itself = query.aggregate and own.where == query.where and projection(own, query) is not None
        return None if read_itself else own
    computed = any(column.aggregate is not Aggregate.NONE for column in query.columns)
    return merge([plan]) if plan.temporal and not computed else None


def is_made_of(view: MoteQuery, query: MoteQuery) -> bool:
    """Whether a view that others' mote query was made into goes on, made of this one. Pulses begin anew with another program."""
    if is_fast(view.period_ms):
        return False
    if not query.aggregate:
        return all(column.aggregate is Aggregate.NONE for column in query.columns)
    return view.aggregate and view.where != query.where and projection(view, query) is not None
