"""Where motes' rows are joined when a query does not say so: what each strategy costs by estimate, and which is taken, and why.

Source: Mihaylov et al., Dynamic Join Optimization in Multi-Hop Wireless Sensor Networks (VLDB 2010), section 3.2.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from skerry.joins.placement.estimates import Rates
from skerry.network.networks import Networks
from skerry.planner.model.pairing import (
    AT_ANCESTOR,
    AT_BASE,
    BY_HASH,
    HOST_NAME,
    IN_NETWORK,
    THROUGH_BASE,
    Pairing,
    with_pairs,
)
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.source_plans import JoinPlan
from skerry.sensors.mote_pairs import aliases
from skerry.service.explain_sharing import describe_sharing
from skerry.service.join_text import (
    WITH_SPARK,
    bare_of,
    check_not_naive,
    learning_text,
    names_host,
    parsed,
)
from skerry.service.pair_service import Facts, PairService
from skerry.service.planning import Planning
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.join_strategies import NAIVE, JoinHints

#: Of equally cheap ones the first is taken: the gateway's own join shares rows with all who ask for them.
STRATEGIES = (NAIVE, AT_BASE, AT_ANCESTOR, THROUGH_BASE, BY_HASH, IN_NETWORK)
_SAID = "the query says so"
#: Of more pairs it is not reckoned what it costs to join them at motes.
PAIRS_MAXIMUM = 1000
#: Costs are sums in another order each time.
_EQUAL = 1 + 1e-9
_LESS = {"energy": "less energy", "bytes": "fewer bytes"}


@dataclass(frozen=True, slots=True)
class Considered:
    """A strategy. ``cost``: of all motes in a sample period, in J or bytes; None: it cannot be reckoned, or followed, and ``why``.
    ``joined_at``: by mote, the pairs that it would join."""

    strategy: str
    cost: float | None = None
    why: str | None = None
    joined_at: tuple[tuple[int, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "strategy": self.strategy.lower(),
            "cost": self.cost,
            "joined_at": dict(self.joined_at),
            "why": self.why,
        }


@dataclass
class _Reckoned:
    """Strategies, the cheapest first, with the plans of those that motes can follow; ``pairing``: None, they can follow none."""

    found: list[Considered] = field(default_factory=list)
    plans: dict[str, QueryPlan] = field(default_factory=dict)
    refusals: list[QueryError] = field(default_factory=list)
    pairing: Pairing | None = None
    facts: Facts = field(default_factory=lambda: Facts((0, 0), 0, 0))

    def cost(self, strategy: str) -> float | None:
        return next((one.cost for one in self.found if one.strategy == strategy), None)

    def put(self, strategy: str, cost: float | None, why: str | None) -> None:
        """Another cost, or why it is none."""
        found = self.found
        self.found = [replace(one, cost=cost, why=why) if one.strategy == strategy else one for one in found]
        self.sort()

    def sort(self) -> None:
        self.found.sort(key=lambda one: (one.cost is None, one.cost or 0, STRATEGIES.index(one.strategy)))


@dataclass(frozen=True)
class Choice:
    """``sql``: the query with the strategy that is taken, as it is asked. ``pairing``: where motes could join; None: they could not.
    ``by_motes``: it is a query of motes, whoever joins; ``rates``: what is learnt of it, by which costs are reckoned."""

    taken: str
    why: str
    sql: str
    hints: JoinHints
    considered: tuple[Considered, ...] = ()
    pairing: Pairing | None = None
    passing: tuple[int, int] = (0, 0)
    pairs: int = 0
    elsewhere: int = 0
    #: Whether its pairs are placed anew while it runs.
    learns: bool = False
    by_motes: bool = False
    rates: Rates | None = None

    def note(self) -> str | None:
        """What its user has not said; None: where it is joined he has."""
        if self.why == _SAID:
            return None
        anew = "; placed anew by what is counted while it runs" if self.learns else ""
        return f"joined {self.taken.lower()}, as {self.why}{anew}"

    def described(self) -> dict[str, Any] | None:
        """For JSON, as :func:`skerry.service.explain_join.describe_join` says; None: nothing could be reckoned."""
        pairing = self.pairing
        if pairing is None or not self.pairs:
            return None
        estimates = self.rates.usual if self.rates is not None else pairing.estimates
        return {
            "runs": self.taken.lower(),
            "taken": self.why,
            "cost": pairing.cost,
            "estimates": {
                "s": estimates.s,
                "t": estimates.t,
                "pair": estimates.pair,
                "window": estimates.window,
            },
            "learns": self.learns,
            "aliases": list(pairing.aliases),
            "motes": dict(zip(pairing.aliases, self.passing, strict=True)),
            "pairs": self.pairs,
            "elsewhere": self.elsewhere,
            "strategies": [one.to_dict() for one in self.considered],
            "why": None,
        }


class JoinChoices:
    """Methods are called under the gateway's lock. ``itself``: whether the gateway joins rows by itself, for which it needs Spark; where it
    does not, motes do, or rows meet at the base as they come in."""

    def __init__(
        self, planning: Planning, pairs: PairService, networks: Networks, *, itself: bool = True
    ) -> None:
        self._planning, self._pairs, self._networks, self._itself = planning, pairs, networks, itself

    def of(self, sql: str, gateways: QueryPlan | None, rates: Rates | None = None) -> Choice | None:
        """What is taken of a query that the gateway plans so, or motes; None: it joins no two motes, or their past. ``rates``: what is
        learnt of it, in place of its user's estimates. Raises QueryError: it cannot be answered in the time that is asked, or by nobody."""
        sources = gateways.sources if gateways is not None else None
        join = sources.join if sources is not None and sources.lookups is None else None
        if gateways is not None and (join is None or aliases(join) is None or gateways.history is not None):
            return None
        select = parsed(sql)
        if select is None or (gateways is None and select.strategy is None):
            return None
        if not self._itself:
            check_not_naive(select.hints or JoinHints())
        if gateways is None:
            join = self._join(bare_of(sql, select))
        return self._chosen(sql, select, join, rates, WITH_SPARK if not self._itself else None)

    def of_hosts(self, sql: str) -> Choice | None:
        """What is taken of a query whose rows are to say which mote has joined them, and that does not say where it is joined: all but what
        the gateway joins by itself. None: it is none. Raises QueryError: motes cannot join its rows, or not in the time that is asked."""
        select = parsed(sql) if HOST_NAME in sql.lower() else None
        if select is None or select.strategy is not None or not names_host(select):
            return None
        hints = select.hints or JoinHints()
        if hints.naive is not None:
            hint = f"leave JOIN NAIVE or {HOST_NAME} out, or write JOIN NAIVE LEARNING ON"
            raise QueryError(
                f"JOIN NAIVE is without {HOST_NAME}: the gateway joins by itself", hint, hints.naive
            )
        return self._chosen(
            sql, select, None, None, f"leave {HOST_NAME} out: the gateway joins by itself then"
        )

    def _chosen(
        self, sql: str, select: ast.Select, join: JoinPlan | None, rates: Rates | None, else_: str | None
    ) -> Choice:
        """``join``: the gateway's own; ``else_``: what is said where motes cannot and the gateway does not by itself; None: it does."""
        hints, bare = select.hints or JoinHints(), bare_of(sql, select)
        said = select.strategy.words if select.strategy is not None else None
        said = NAIVE if hints.naive is not None else said
        reckoned = self._reckoned(bare, said, join, hints, rates)
        if reckoned.pairing is None:
            if else_ is not None:
                raise QueryError(f"motes cannot join these rows: {reckoned.refusals[0].message}", else_)
            return _nowhere(sql, hints, reckoned.refusals[0])
        may_learn = hints.learning is not False
        if said is not None:
            taken, why, by_motes = said, _SAID, select.strategy is not None
            asked, learns = sql, by_motes and bool(hints.learning)
        else:
            # Only where it begins is chosen here.
            taken, why, by_motes = self._taken(join, reckoned, learns=may_learn, itself=else_ is None)
            learns = by_motes and may_learn
            asked = f"{bare} JOIN {taken}{learning_text(hints)}" if by_motes else sql
        facts = reckoned.facts
        return Choice(
            taken, why, asked, hints, tuple(reckoned.found), reckoned.pairing, facts.passing, facts.pairs, facts.elsewhere, learns,
            by_motes, rates,
        )  # fmt: skip

    def _reckoned(
        self, bare: str, said: str | None, join: JoinPlan | None, hints: JoinHints, rates: Rates | None
    ) -> _Reckoned:
        """What each strategy costs, the cheapest first."""
        reckoned = _Reckoned()
        for words in STRATEGIES[1:]:
            try:
                if reckoned.facts.pairs > PAIRS_MAXIMUM and words != said:
                    raise QueryError(f"{reckoned.facts.pairs:,} pairs are too many to reckon")
                one, reckoned.plans[words] = self._considered(f"{bare} JOIN {words}", rates)
            except QueryError as error:
                one = Considered(words, why=error.message)
                reckoned.refusals.append(error)
            reckoned.found.append(one)
            if reckoned.pairing is None and words in reckoned.plans:
                reckoned.pairing = reckoned.plans[words].pairing
                assert reckoned.pairing is not None
                reckoned.facts = self._pairs.facts(reckoned.pairing)
        if reckoned.pairing is not None:
            reckoned.found.append(self._naive(bare, reckoned, join, hints, rates))
        reckoned.sort()
        return reckoned

    def _naive(
        self, bare: str, reckoned: _Reckoned, join: JoinPlan | None, hints: JoinHints, rates: Rates | None
    ) -> Considered:
        """All rows at the gateway, which joins them by itself or, where it learns of them, as they come in."""
        pairing, facts = reckoned.pairing, reckoned.facts
        assert pairing is not None
        if pairing.within_ms is not None:
            return Considered(NAIVE, why="no time is promised for rows that the gateway joins")
        try:
            plan = self._planning.planned(f"{bare} JOIN {NAIVE}{learning_text(hints)}")
        except QueryError:
            plan = None
        if join is not None and self._itself:
            needs = max(len(one.needs) for one in join.tables)
        elif plan is not None:
            needs = pairing.width // 2
        else:
            return Considered(NAIVE, why="the gateway joins no such rows")
        if isinstance(plan, QueryPlan):
            reckoned.plans[NAIVE] = plan
        cost = self._pairs.naive_cost(pairing, next(iter(reckoned.plans.values())).period_ms, needs, rates)
        root = self._networks.first.root
        return Considered(NAIVE, cost, joined_at=((root, facts.pairs - facts.elsewhere),))

    def _join(self, bare: str) -> JoinPlan | None:
        """The gateway's, of a query that motes can run; None: it cannot."""
        try:
            plan = self._planning.gateways(bare)
        except QueryError:
            return None
        return plan.sources.join if plan is not None and plan.sources is not None else None

    def _considered(self, sql: str, rates: Rates | None) -> tuple[Considered, QueryPlan]:
        plan = self._planning.planned(sql)
        assert isinstance(plan, QueryPlan)
        assert plan.pairing is not None
        told, placed = self._pairs.places(plan, rates)
        cost = self._pairs.cost(plan, placed, rates)
        count = Counter({host: len(pairs) for host, pairs in placed.hosts.items()})
        base = len(placed.base) - self._pairs.facts(plan.pairing).elsewhere
        if base:
            count[self._networks.first.root] += base
        one = Considered(plan.pairing.strategy, cost, joined_at=tuple(count.most_common()))
        return one, replace(plan, clauses=with_pairs(told, plan.clauses))

    def _taken(
        self, join: JoinPlan | None, reckoned: _Reckoned, *, learns: bool, itself: bool
    ) -> tuple[str, str, bool]:
        """Which, and why, and whether it is a query of motes; what they have no room for is found out as it is tried. ``learns``: it may
        be placed anew; ``itself``: the gateway may join by itself."""
        facts, pairing = reckoned.facts, reckoned.pairing
        assert pairing is not None
        usual = (NAIVE, False) if itself else (AT_BASE, True)
        why = None
        if not facts.pairs:
            why = "no two motes that the gateway knows are a pair"
        elif facts.pairs == facts.elsewhere:
            why = "the gateway knows no way by which the motes of any pair reach one root"
        if why is not None:
            return usual[0], why, usual[1]
        if itself and join is not None and reckoned.cost(NAIVE) is not None and self._runs(join):
            reckoned.put(NAIVE, 0.0, None)
            return NAIVE, "queries that run bring these rows already: it costs nothing more", False
        base = min((cost for cost in map(reckoned.cost, (NAIVE, AT_BASE)) if cost is not None), default=None)
        # The gateway's own join shares rows with all who ask for them. What is placed anew is a query of its own: its motes send no more
        # than they need.
        order = (*STRATEGIES[1:], NAIVE) if learns else STRATEGIES
        while costs := [one.cost for one in reckoned.found if one.cost is not None]:
            least = min(costs)
            best = min(
                (one for one in reckoned.found if one.cost is not None and one.cost <= least * _EQUAL),
                key=lambda one: order.index(one.strategy),
            )
            by_motes = best.strategy != NAIVE or (learns and NAIVE in reckoned.plans)
            refused = self._refused(reckoned.plans[best.strategy]) if by_motes else None
            if refused is None:
                return best.strategy, _reason(best, base, pairing.cost), by_motes
            reckoned.put(best.strategy, None, refused)
        return usual[0], "motes have no room for it", usual[1]

    def _runs(self, join: JoinPlan) -> bool:
        """Whether what motes would be asked for the gateway's join comes already."""
        first = self._networks.first
        for text in join.questions:
            plan = self._planning.planned(text)
            assert isinstance(plan, QueryPlan)
            try:
                if not describe_sharing(plan, first.demand, first.now())["unchanged"]:
                    return False
            except QueryError:
                return False
        return True

    def _refused(self, plan: QueryPlan) -> str | None:
        """Why motes cannot be asked it beside what they run."""
        first = self._networks.first
        try:
            describe_sharing(plan, first.demand, first.now())
        except QueryError as error:
            return error.message
        return None


def _nowhere(sql: str, hints: JoinHints, refusal: QueryError) -> Choice:
    """Motes cannot join these rows: the gateway does. Raises QueryError where that may be too late."""
    if hints.naive is not None:
        return Choice(NAIVE, _SAID, sql, hints)
    if hints.within is not None:
        # Only what motes join is there in a time that is known.
        raise refusal
    return Choice(NAIVE, refusal.message, sql, hints)


def _reason(best: Considered, base: float | None, unit: str) -> str:
    less = _LESS[unit]
    if best.strategy in (NAIVE, AT_BASE) or base is None or best.cost is None:
        return f"by estimate nothing takes {less} than to join at the base"
    share = 1 - best.cost / base if base > 0 else 0.0
    return f"by estimate it takes {share:.0%} {less} than to join at the base"
