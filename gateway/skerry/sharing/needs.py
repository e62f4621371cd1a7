"""What a user's query needs of motes, and the ways in which that can be served.

* Rows of attributes come by a stream of rows, which any number of such queries share.
* Aggregates come from motes, by a mote query that has those of others too, or are computed at the gateway from rows of all motes.
* Windows over each mote's own rows, and ONCE, have a mote query of their own, or come from one that others share.
* What waits for events, acts, stores rows or lets them queue has a mote query of its own, shared by who asks for the very same.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from enum import Enum

from skerry.expressions.expression import attributes_of
from skerry.planner.model.columns import IN_EVERY_ROW
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.fast_sampling import is_fast
from skerry.planner.physical.merge import merge
from skerry.planner.physical.row_union import RowNeed
from skerry.sharing.shared_pulses import family
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import FIELDS_MAXIMUM

#: ONCE waits no longer than this, in ms, for an epoch of a stream that others have.
ONCE_WAITS_MS = 30_000
_EPOCH = BY_NAME["epoch"].number


class Kind(Enum):
    """What serves a need when motes have room for each."""

    ROWS = "rows"
    AGGREGATES = "aggregates"
    #: A mote query that nobody has a part in but who asks for the same.
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Need:
    """Equal needs are one, whoever has them. ``share``: those with the same have a mote query together as long as there is room for
    others; ``plan``: of one who has it."""

    kind: Kind
    share: Hashable
    key: Hashable
    plan: QueryPlan = field(compare=False, repr=False)

    @property
    def is_once(self) -> bool:
        """Whether it is over with an epoch."""
        return self.plan.once

    @property
    def is_unshareable(self) -> bool:
        """Whether nobody else may ever share it, as long as motes have room."""
        return isinstance(self.share, tuple) and self.share[:1] == ("user",)

    @property
    def shared(self) -> QueryPlan:
        """The plan as others' mote queries serve it."""
        return replace(self.plan, once=False, period_ms=ONCE_WAITS_MS) if self.plan.once else self.plan

    @property
    def counts_epochs(self) -> bool:
        """Whether motes compute something from the number of an epoch, which depends on the sample period."""
        plan = self.plan
        exprs = [plan.where, *plan.groups, *plan.aggregates()]
        return any(_EPOCH in attributes_of(expr) for expr in exprs if expr is not None)

    def rows(self) -> RowNeed | None:
        """The rows from which the gateway could serve it; None: it could not."""
        plan = self.shared
        if not _is_flexible(self.plan):
            return None
        attributes = plan.attributes - IN_EVERY_ROW
        if len(attributes) > FIELDS_MAXIMUM:
            return None
        # What is computed from rows of all motes is told from what has not come by all of them having sent one.
        where = None if plan.aggregate or plan.temporal else plan.mote_where
        return RowNeed(plan.attributes, plan.period_ms, where)

    def aggregates(self) -> bool:
        """Whether motes could compute it with others' aggregates."""
        return self.plan.aggregate and _is_flexible(self.plan)


def _is_flexible(plan: QueryPlan) -> bool:
    """Whether it is for the gateway to choose how it is served."""
    return not (is_fast(plan.period_ms) or plan.clauses or plan.budget or plan.columns or plan.at_once)


def need_of(plan: QueryPlan, user: str) -> Need:
    """What a user's query needs."""
    share: Hashable
    key: Hashable
    own = _own(plan, user)
    if own is not None:
        # Who wants all sampled at once has it at the cost of sensors that conditions would spare the others.
        share = ("at once", own) if plan.at_once and own != ("user", user) else own
        return Need(Kind.OWN, share, (plan.attributes, plan.temporal, plan.mote_where), plan)
    kind = Kind.AGGREGATES if plan.aggregate else Kind.ROWS
    share, key = (), (plan.attributes, plan.period_ms, plan.mote_where)
    if plan.aggregate:
        share, key = (plan.period_ms, plan.where, plan.groups), (tuple(plan.aggregates()), plan.within)
    return Need(Kind.OWN, ("at once", share), key, plan) if plan.at_once else Need(kind, share, key, plan)


def _own(plan: QueryPlan, user: str) -> Hashable | None:
    """Who has the same may share a mote query that is theirs alone; None: all may."""
    fast = family(plan)
    if fast is not None:
        return fast
    if plan.once or _shares_with_nobody(plan):
        return "user", user
    if plan.clauses and all(clause.kind is Aggregate.QUEUE for clause in plan.clauses) and not plan.budget:
        # Users share what a queue makes of rows only where it makes the same of them: all that motes do is equal.
        return "queue", merge([plan])
    if plan.budget or plan.clauses:
        return "alone", plan.text
    if plan.temporal:
        # Of one program only: in another, that samples more, windows would begin anew.
        return "windows", merge([plan])
    return ("fast rows", plan.period_ms) if is_fast(plan.period_ms) else None


def _shares_with_nobody(plan: QueryPlan) -> bool:
    """Whether who came later with the same would not have what he asks for, or take it from those before."""
    if any(clause.kind is Aggregate.STOP_ON for clause in plan.clauses):
        # On some motes the event may have ended it.
        return True
    # A later end takes another program, in which windows begin anew.
    return bool(plan.temporal) and plan.duration_ms is not None
