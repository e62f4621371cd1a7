"""Where motes' rows are joined when a query does not say so: what each strategy costs by estimate, and which is taken, and why.

Source: Mihaylov et al., Dynamic Join Optimization in Multi-Hop Wireless Sensor Networks (VLDB 2010), section 3.2.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from skerry.network.networks import Networks
from skerry.planner.model.pairing import (
    AT_ANCESTOR,
    AT_BASE,
    BY_HASH,
    IN_NETWORK,
    THROUGH_BASE,
    Pairing,
)
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.source_plans import JoinPlan
from skerry.sensors.mote_pairs import aliases
from skerry.service.explain_sharing import describe_sharing
from skerry.service.pair_service import Facts, PairService
from skerry.service.planning import Planning
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.join_strategies import NAIVE, JoinHints
from skerry.sql.parser import parse

#: Of equally cheap ones the first is taken: the gateway's own join shares rows with all who ask for them.
STRATEGIES = (NAIVE, AT_BASE, AT_ANCESTOR, THROUGH_BASE, BY_HASH, IN_NETWORK)
_SAID = "the query says so"
#: Of more pairs it is not reckoned what it costs to join them at motes.
PAIRS_MAXIMUM = 1000
#: Costs are sums in another order each time.
_EQUAL = 1 + 1e-9
#: Texts, names in quotation marks, and comments.
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*")
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


@dataclass(frozen=True)
class Choice:
    """``sql``: the query with the strategy that is taken, as it is asked. ``pairing``: where motes could join; None: they could not."""

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

    def described(self) -> dict[str, Any] | None:
        """For JSON, as :func:`skerry.service.explain_join.describe_join` says; None: nothing could be reckoned."""
        pairing = self.pairing
        if pairing is None or not self.pairs:
            return None
        estimates = pairing.estimates
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
    """Methods are called under the gateway's lock."""

    def __init__(self, planning: Planning, pairs: PairService, networks: Networks) -> None:
        self._planning, self._pairs, self._networks = planning, pairs, networks

    def of(self, sql: str, gateways: QueryPlan | None) -> Choice | None:
        """What is taken of a query that the gateway plans so, or motes; None: it joins no two motes, or their past. Raises QueryError: it
        cannot be answered in the time that is asked."""
        join = gateways.sources.join if gateways is not None and gateways.sources is not None else None
        if gateways is not None and (join is None or aliases(join) is None or gateways.history is not None):
            return None
        select = _parsed(sql)
        if select is None or (gateways is None and select.strategy is None):
            return None
        hints = select.hints or JoinHints()
        bare = _without(sql, select.strategy.span if select.strategy is not None else hints.naive)
        if gateways is None:
            join = self._join(bare)
        said = select.strategy.words if select.strategy is not None else None
        said = NAIVE if hints.naive is not None else said
        found, plans = list[Considered](), dict[str, QueryPlan]()
        known, facts, refusals = None, Facts((0, 0), 0, 0), list[QueryError]()
        for words in STRATEGIES[1:]:
            try:
                if facts.pairs > PAIRS_MAXIMUM and words != said:
                    raise QueryError(f"{facts.pairs:,} pairs are too many to reckon")
                one, plans[words] = self._considered(f"{bare} JOIN {words}")
            except QueryError as error:
                one = Considered(words, why=error.message)
                refusals.append(error)
            found.append(one)
            if known is None and words in plans:
                known = plans[words].pairing
                assert known is not None
                facts = self._pairs.facts(known)
        if known is None:
            return _nowhere(sql, hints, refusals[0])
        naive = Considered(NAIVE, why="the gateway joins no such rows")
        if join is not None and hints.within is not None:
            naive = Considered(NAIVE, why="no time is promised for rows that the gateway joins")
        elif join is not None:
            needs = max(len(one.needs) for one in join.tables)
            cost = self._pairs.naive_cost(known, next(iter(plans.values())).period_ms, needs)
            root = self._networks.first.root
            naive = Considered(NAIVE, cost, joined_at=((root, facts.pairs - facts.elsewhere),))
        found = sorted([naive, *found], key=lambda one: (one.cost is None, one.cost or 0))
        if said is not None:
            taken, why = said, _SAID
        else:
            taken, why, found = self._taken(join, found, plans, known, facts.pairs, facts.elsewhere)
        # Only where it begins is chosen here.
        chosen = said is None and taken != NAIVE
        learns = chosen and hints.learning is None
        asked = f"{bare} JOIN {taken}{' LEARNING ON' * learns}" if chosen else sql
        learns = learns or (taken != NAIVE and bool(hints.learning))
        return Choice(
            taken, why, asked, hints, tuple(found), known, facts.passing, facts.pairs, facts.elsewhere, learns
        )

    def _join(self, bare: str) -> JoinPlan | None:
        """The gateway's, of a query that motes can run; None: it cannot."""
        try:
            plan = self._planning.gateways(bare)
        except QueryError:
            return None
        return plan.sources.join if plan is not None and plan.sources is not None else None

    def _considered(self, sql: str) -> tuple[Considered, QueryPlan]:
        plan = self._planning.planned(sql)
        assert isinstance(plan, QueryPlan)
        assert plan.pairing is not None
        told, placed = self._pairs.places(plan)
        cost = self._pairs.cost(plan, placed)
        count = Counter({host: len(pairs) for host, pairs in placed.hosts.items()})
        base = len(placed.base) - self._pairs.facts(plan.pairing).elsewhere
        if base:
            count[self._networks.first.root] += base
        one = Considered(plan.pairing.strategy, cost, joined_at=tuple(count.most_common()))
        return one, replace(plan, clauses=(told,))

    def _taken(
        self,
        join: JoinPlan | None,
        found: list[Considered],
        plans: dict[str, QueryPlan],
        pairing: Pairing,
        pairs: int,
        elsewhere: int,
    ) -> tuple[str, str, list[Considered]]:
        """Which, and why; what motes have no room for is found out as it is tried."""
        free = next((one for one in found if one.strategy == NAIVE and one.cost is not None), None)
        if free is not None:
            if not pairs:
                return NAIVE, "no two motes that the gateway knows are a pair", found
            if pairs == elsewhere:
                return (
                    NAIVE,
                    "the gateway knows no way by which the motes of any pair reach one root",
                    found,
                )
            if join is not None and self._runs(join):
                found = [replace(one, cost=0.0) if one is free else one for one in found]
                found.sort(key=lambda one: (one.cost is None, one.cost or 0))
                return NAIVE, "queries that run bring these rows already: it costs nothing more", found
        base = min(
            (one.cost for one in found if one.strategy in (NAIVE, AT_BASE) and one.cost is not None),
            default=None,
        )
        while costs := [one.cost for one in found if one.cost is not None]:
            least = min(costs)
            best = min(
                (one for one in found if one.cost is not None and one.cost <= least * _EQUAL),
                key=lambda one: STRATEGIES.index(one.strategy),
            )
            refused = self._refused(plans[best.strategy]) if best.strategy in plans else None
            if refused is None:
                return best.strategy, _reason(best, base, pairing.cost), found
            found = [replace(one, cost=None, why=refused) if one is best else one for one in found]
        return NAIVE, "motes have no room for it", found

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


def _parsed(sql: str) -> ast.Select | None:
    """A SELECT over two motes; None: it is none."""
    try:
        select = parse(sql, {"sensors"})
    except QueryError:
        return None
    if not isinstance(select, ast.Select):
        return None
    named = [table.name.name.lower() for table in select.tables]
    return select if named == ["sensors", "sensors"] else None


def _without(sql: str, span: ast.Span | None) -> str:
    """The query without the words that say where it is joined, so that others can be tried."""
    bare = sql if span is None else sql[: span.start] + sql[span.end :]
    blank = _QUOTED.sub(lambda found: " " * len(found[0]) if found[0].startswith("-") else found[0], bare)
    return bare[: len(blank.rstrip("; \t\r\n"))]
