"""Where motes join their rows with each other, while queries run: placed when one is asked, and anew when the tree or the motes change."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from skerry.catalog.catalog import Catalog
from skerry.ingest.join_tally import JoinTally
from skerry.ingest.joined_rows import JoinedRows
from skerry.joins.placement import strategies
from skerry.joins.placement.estimates import Rates
from skerry.joins.placement.plans import gathered
from skerry.joins.placement.trees import Tree
from skerry.network.networks import Networks
from skerry.planner.cost.join_prices import prices, way_cells
from skerry.planner.model.clause import Clause
from skerry.planner.model.pairing import WAY_OF, Pairing, acts, pairs_clause, with_pairs
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.mote_memory import bytes_taken
from skerry.sensors.paired_motes import Pair, pairs_of, passing_of
from skerry.service.explain_join import known_statics, trees
from skerry.service.kept_learning import learning_of, row_of
from skerry.service.pair_answers import Crowded, crowded
from skerry.service.pair_costs import plan_of
from skerry.service.pair_learning import Learning, look
from skerry.service.pair_places import ROOM, Places, clause, places
from skerry.service.pair_ways import Way
from skerry.service.queries import Queries, UserQuery
from skerry.sql.errors import QueryError
from skerry.sql.join_strategies import NAIVE
from skerry.storage.state.database import Row

#: S of network time between two looks at the tree: what is the same in two of them, one after the other, is there to stay.
LOOK_S = 30
#: Shares of which a user has said nothing.
UNKNOWN = (1.0, 1.0, 1.0)
#: A pair without answers for so many epochs is named.
SILENT_EPOCHS = 10


@dataclass(frozen=True, slots=True)
class Facts:
    """Of a join: motes that may be s, and t; pairs, and how many of them have no common root that the gateway knows."""

    passing: tuple[int, int]
    pairs: int
    elsewhere: int


class PairService:
    """Methods are called under the gateway's lock. ``joined``: what has come of a mote query; None: nothing."""

    def __init__(
        self, networks: Networks, queries: Queries, joined: Callable[[int], JoinedRows | None]
    ) -> None:
        self._networks, self._queries, self._joined = networks, queries, joined
        #: By the text of a query: what motes are told, and what was found at the last look.
        self._told: dict[str, Clause] = {}
        self._found: dict[str, Clause] = {}
        self._places: dict[str, Places] = {}
        #: Of those that are placed anew by what is counted.
        self._learning: dict[str, Learning] = {}
        self._looked = 0.0

    def places_now(self, plan: QueryPlan) -> tuple[Clause, Places]:
        """Where a query's pairs are joined best by what is known of it now, if it runs. Raises QueryError where none can be."""
        known = self._learning.get(plan.text)
        return self.places(plan) if known is None else self.places(known.plan(plan), known.rates)

    def places(self, plan: QueryPlan, rates: Rates | None = None) -> tuple[Clause, Places]:
        """Where a query's pairs would be joined best, by its own estimates if by no others. Raises QueryError where none can be."""
        assert plan.pairing is not None
        if len(self._networks.roots) > 1:
            hint = "leave out where it is joined: the gateway joins motes of several roots"
            raise QueryError("no way leads from a root's motes to another's", hint)
        catalog: Catalog = self._networks.catalog
        motes = {mote.nodeid: mote for mote in catalog.all()}
        taken = self._taken(plan)
        # What two rows that match do, no mote does of pairs that the gateway joins.
        found = places(
            plan.pairing, plan.period_ms, motes, self._room(plan), rates, taken, forced=acts(plan.clauses)
        )
        told, found = clause(plan, found)
        return told, replace(found, crowded=self._crowded(plan, found, rates))

    def _crowded(self, plan: QueryPlan, placed: Places, rates: Rates | None) -> tuple[Crowded, ...]:
        pairing = plan.pairing
        assert pairing is not None
        _, tree_of = self._known()
        return crowded(pairing, plan.period_ms, placed.hosts, tree_of, rates or Rates(pairing.estimates))

    def check(self, plan: QueryPlan) -> None:
        """Raises QueryError where motes would have more answers than they get up the tree, by what its user has said of it."""
        if plan.pairing is not None and plan.text not in self._told:
            _check_answers(plan.pairing, self.places(plan)[1], None)

    def facts(self, pairing: Pairing) -> Facts:
        """How many motes and pairs it is about. Raises QueryError: there are too many motes."""
        statics, tree_of = self._known()
        s, t = passing_of(pairing, statics)
        pairs = pairs_of(pairing, statics)
        elsewhere = sum(_tree(tree_of, pair) is None for pair in pairs)
        return Facts((len(s), len(t)), len(pairs), elsewhere)

    def cost(self, plan: QueryPlan, placed: Places, rates: Rates | None = None) -> float:
        """Of all motes in a sample period, in J or bytes, where pairs are joined there. Raises QueryError: a way is to carry too much, or
        there are too many answers."""
        pairing = plan.pairing
        assert pairing is not None
        if pairing.strategy == NAIVE:
            return self.naive_cost(pairing, plan.period_ms, pairing.width // 2, rates)
        _check_answers(pairing, placed, rates)
        _, tree_of = self._known()
        at = placed.at
        price = prices(pairing.cost, pairing.width // 2, pairing.width, plan.period_ms / 1000)
        found: dict[int, dict[Pair, int]] = defaultdict(dict)
        trees = {tree.root: tree for tree in tree_of.values()}
        for pair in (*at, *placed.base):
            tree = _tree(tree_of, pair)
            if tree is not None:
                found[tree.root][pair] = at.get(pair, tree.root)
        rates, total = rates or Rates(pairing.estimates), 0.0
        cells = way_cells(plan.period_ms / 1000)
        for root, those in found.items():
            made = plan_of(pairing.way, those, trees[root], placed.relays)
            most = max((flow.rate(rates) for flow in made.flows if not flow.by_tree), default=0.0)
            if most > cells:
                text = f"{most:g} rows would go by a way in a sample period, which has {cells:g} cells then"
                raise QueryError(text, "a longer SAMPLE PERIOD has more of them")
            total += made.cost(rates, price, trees[root])
        return total

    def naive_cost(self, pairing: Pairing, period_ms: int, needs: int, rates: Rates | None = None) -> float:
        """The same where all motes that may be s or t send so many values to the gateway. Raises QueryError."""
        statics, tree_of = self._known()
        s, t = passing_of(pairing, statics)
        price = prices(pairing.cost, needs, needs, period_ms / 1000)
        rates, total = rates or Rates(pairing.estimates), 0.0
        for tree in {tree.root: tree for tree in tree_of.values()}.values():
            passing = {
                mote: frozenset(role for role, those in (("s", s), ("t", t)) if mote in those)
                for mote in sorted(s | t)
                if tree_of.get(mote) is tree and tree.up(mote) is not None
            }
            total += gathered(strategies.NAIVE, passing, (), tree).cost(rates, price, tree)
        return total

    def _known(self) -> tuple[dict[int, dict[str, int]], dict[int, Tree]]:
        """Static attributes, and the tree, by mote."""
        motes = {mote.nodeid: mote for mote in self._networks.catalog.all()}
        known = trees(motes)
        statics = {number: known_statics(mote) for number, mote in motes.items()}
        return statics, {number: known[mote.root] for number, mote in motes.items() if mote.root in known}

    def _taken(self, plan: QueryPlan) -> dict[Way, float]:
        """Ways by which rows of other queries go, and how many in a second."""
        plans = {query.plan.text: query.plan for query in self._queries.all()}
        found: dict[Way, float] = defaultdict(float)
        for text, placed in self._places.items():
            other = plans.get(text)
            if text != plan.text and other is not None and other.pairing is not None:
                way = WAY_OF[self.strategy(other)]
                for one, rows in placed.loads(way, self._networks.first.root, other.period_ms).items():
                    found[one] += rows
        return found

    def _room(self, plan: QueryPlan) -> int:
        """Bytes that a mote has for a query's rows, beside all other queries."""
        groups = self._networks.placement.groups().values()
        others = [group.query() for group in groups if all(one.text != plan.text for one in group.plans())]
        return ROOM - sum(map(bytes_taken, others))

    def placed(self, plan: QueryPlan) -> QueryPlan:
        """A query comes: its plan says where its pairs are joined. Raises QueryError."""
        if plan.pairing is None:
            return plan
        if plan.text not in self._told:
            if plan.pairing.learns:
                self._learning[plan.text] = Learning.of(plan.pairing, time.time())
            self._told[plan.text], self._places[plan.text] = self.places(plan)
            self._place()
        return replace(plan, clauses=with_pairs(self._told[plan.text], plan.clauses))

    def rows(self) -> list[Row]:
        """What is learnt, as it is kept."""
        return [row_of(text, known) for text, known in self._learning.items()]

    def restore(self, rows: Iterable[Row]) -> None:
        """What a gateway before has learnt. Raises LookupError, TypeError, ValueError: it is not as that has kept it."""
        self._learning = {row["query_text"]: learning_of(row) for row in rows}

    def follow(self, now: float) -> bool:
        """Time goes on: pairs of which the tree has changed are placed anew, and what nobody asks any more is forgotten. Whether there is
        anything new to be kept."""
        if 0 <= now - self._looked < LOOK_S:
            return False
        self._looked = now
        plans = {
            query.plan.text: query.plan for query in self._queries.all() if query.plan.pairing is not None
        }
        changed = bool(self._told.keys() - plans.keys())
        self._told = {text: told for text, told in self._told.items() if text in plans}
        before = self.rows()
        self._learning = {text: known for text, known in self._learning.items() if text in plans}
        for text, plan in plans.items():
            try:
                changed |= self._learn(plan)
                made, found = self.places_now(plan)
            except QueryError:
                continue
            if made != self._told.get(text) and made == self._found.get(text):
                self._told[text], self._places[text] = made, found
                changed = True
            self._found[text] = made
        self._found = {text: found for text, found in self._found.items() if text in plans}
        if changed:
            self._place()
        return self.rows() != before

    def _place(self) -> None:
        plans = {query.plan.text: query.plan for query in self._queries.all()}
        filled_ms = {
            text: known.filled_ms(plans[text]) for text, known in self._learning.items() if text in plans
        }
        self._networks.place_by(dict(self._told), filled_ms)

    def _learn(self, plan: QueryPlan) -> bool:
        """What is counted of a query; whether its pairs are placed anew by that. Raises QueryError."""
        assert plan.pairing is not None
        if not plan.pairing.learns:
            return False
        known = self._learning.setdefault(plan.text, Learning.of(plan.pairing, time.time()))
        demand = self._networks.first.demand
        users = [one.id for one in self._queries.all() if one.plan.text == plan.text and demand.has(one.id)]
        runs = demand.query_of(users[0]) if users else None
        installed = demand.installation(runs) if runs is not None else None
        joined = self._joined(runs) if runs is not None else None
        told = self._told.get(plan.text)
        if joined is None or installed is None or told is None or pairs_clause(installed.mote_query) != told:
            # Nothing has come yet, or it is to change.
            return False
        before = known.changes
        self.learn(plan, joined.tally)
        return known.changes != before

    def learn(self, plan: QueryPlan, tally: JoinTally) -> dict[str, Any] | None:
        """Pairs of a query that runs are placed anew where that pays by what was counted; what is learnt of it. Raises QueryError."""
        known = self._learning[plan.text]
        moved = look(known, plan, self._places[plan.text], tally, self._weigh, self.cost, time.time())
        if moved is not None:
            self._told[plan.text], self._places[plan.text] = moved.told, moved.places
        return self.learning(plan)

    def _weigh(self, plan: QueryPlan, rates: Rates) -> tuple[Clause, Places, float]:
        told, found = self.places(plan, rates)
        return told, found, self.cost(plan, found, rates)

    def strategy(self, plan: QueryPlan) -> str:
        """By which its pairs are placed now."""
        assert plan.pairing is not None
        known = self._learning.get(plan.text)
        return plan.pairing.strategy if known is None else known.strategy

    def runs(self, text: str) -> bool:
        """Whether a query of this text does, whose pairs are placed."""
        return text in self._told

    def rates(self, plan: QueryPlan) -> Rates | None:
        """What is known of a query that runs by what was counted of it; None: nothing is learnt of it."""
        known = self._learning.get(plan.text)
        return known.assumed if known is not None else None

    def learning(self, plan: QueryPlan) -> dict[str, Any] | None:
        """What is learnt of a query that runs; None: nothing is."""
        known = self._learning.get(plan.text)
        return known.described() if known is not None else None

    def status(self) -> list[dict[str, Any]]:
        """Which pairs of each query are joined where."""
        return [described for _, described in self._described()]

    def told(self) -> dict[str, str]:
        """The same by query, in a line for people."""
        found = {}
        for query, described in self._described():
            known = self._places.get(query.plan.text)
            if known is None or not (known.hosts or known.base):
                continue
            learning = described["learning"]
            why = f", as {learning['changes'][-1]['why']}" if learning and learning["changes"] else ""
            lines = [line.strip() for line in known.lines()]
            if known.base and acts(query.plan.clauses):
                lines.append("for pairs at the gateway no mote acts")
            found[query.id] = f"joined {described['kind']}{why}: " + "; ".join(lines)
        return found

    def silent(self, plan: QueryPlan) -> list[dict[str, Any]]:
        """Of a query that runs, pairs without an answer, and why."""
        found: Iterable[list[dict[str, Any]]] = (
            described["silent"] for query, described in self._described() if query.plan.text == plan.text
        )
        return next(iter(found), [])

    def _silent(self, plan: QueryPlan, numbers: Iterable[int]) -> list[dict[str, Any]]:
        """Pairs without an answer since counting began, and why, where enough was counted to say so."""
        assert plan.pairing is not None
        tallies = [one.tally.counts() for one in map(self._joined, numbers) if one is not None]
        counts = max(tallies, key=lambda one: one.epochs, default=None)
        if counts is None or counts.epochs < SILENT_EPOCHS:
            return []
        silent = counts.silent(plan.pairing.aliases)
        return [{"pair": list(pair), "why": why} for pair, why in silent.items()]

    def _described(self) -> list[tuple[UserQuery, dict[str, Any]]]:
        found = []
        for query in self._queries.all():
            if query.plan.pairing is not None and not query.finished:
                known = self._places.get(query.plan.text)
                streams = self._networks.streams
                numbers = {streams[number].query for number in query.feeds if number in streams}
                described = {
                    "query": query.id,
                    "kind": self.strategy(query.plan).lower(),
                    **(known.described() if known is not None else {"hosts": [], "base": [], "groups": []}),
                    "past_their_host": sum(
                        one.strays for one in map(self._joined, numbers) if one is not None
                    ),
                    "silent": self._silent(query.plan, numbers),
                    "learning": self.learning(query.plan),
                }
                found.append((query, described))
        return found


def _check_answers(pairing: Pairing, placed: Places, rates: Rates | None) -> None:
    """Of what nobody has said or counted nothing is known: it may be less. Raises QueryError."""
    if placed.crowded and (rates is not None or pairing.shares != UNKNOWN):
        hint = "write JOIN AT BASE, a longer SAMPLE PERIOD, or conditions that fewer rows pass"
        raise QueryError(str(placed.crowded[0]), hint)


def _tree(tree_of: Mapping[int, Tree], pair: Pair) -> Tree | None:
    """In which both reach the root; None: there is none."""
    one, other = (tree_of.get(mote) for mote in pair)
    if one is None or one is not other or any(one.up(mote) is None for mote in pair):
        return None
    return one
