"""Indexes: tuples that motes store for each other. Who makes and drops them, and what is asked of them."""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from binascii import crc_hqx
from contextlib import suppress
from functools import partial
from typing import Any

from skerry.index.placement import Position
from skerry.network.index_asks import IndexAsk
from skerry.network.networks import Networks
from skerry.planner.cost.index_prices import Upkeep, upkeep
from skerry.planner.features.index_owners import amended
from skerry.planner.features.indexing import STORING, Index, clauses_of
from skerry.planner.model.clause import Clause
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.source_plans import SourcePlan
from skerry.planner.planner import index_fits, plan_index
from skerry.sensors.definitions import SensorTable
from skerry.sensors.gathering import at_mote, plan_gathering
from skerry.sensors.index_state_prices import Load, StatePrice, price_of
from skerry.sensors.index_states import StateQuestion, answered_by_states, states_of
from skerry.sensors.index_tables import StoredTuple, answered, question_of, table_of
from skerry.service.queries import Queries, UserQuery
from skerry.service.reader import NotYetError
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.index_statements import CreateIndex, DropIndex
from skerry_protocol.commands import event_number
from skerry_protocol.limits import INDEX_NUMBERS

log = logging.getLogger(__name__)

#: A mote that has not been heard for so long, in s of network time, has no part in a new index.
_SILENT_S = 3600.0
#: S of network time between two looks at who is there: what is the same in two of them, one after the other, is there to stay.
_LOOK_S = 30.0
#: S of network time after which motes have heard of other owners, and looked through their tuples.
_TOLD_S = 300.0
#: Where a mote says that it stands, in dm, that has not been told.
_UNTOLD = (0, 0)


class IndexService:
    """Not locked: its owner calls it under his lock, but for :meth:`rows`, which may be called from any thread."""

    def __init__(self, network: Networks, queries: Queries) -> None:
        self._network, self._queries = network, queries
        #: By query.
        self._asks: dict[str, IndexAsk] = {}
        #: Motes that have not answered, and when they were asked first, in network time: who has not been heard since is gone.
        self._silent: dict[int, float] = {}
        #: By query the owners as they were found at the last look.
        self._found: dict[str, Index] = {}
        #: Where those stand that ask others, as motes have been told.
        self._asking: dict[int, Position | None] = {}
        self._looked = 0.0

    # ---- what there is ----

    def all(self) -> dict[str, Index]:
        """By name in lower case."""
        return self._queries.indexes()

    def tables(self) -> dict[str, SensorTable]:
        """What users ask, likewise."""
        return {key: table_of(index) for key, index in self.all().items()}

    def keeper(self, statement: DropIndex, user: str) -> str:
        """The user's query that keeps an index. Raises QueryError."""
        name = statement.name
        for query in self._queries.all():
            if query.index is not None and query.index.name.lower() == name.name.lower():
                if query.user != user:
                    text = f"index '{query.index.name}' is another user's"
                    raise QueryError(text, "who created it drops it", name.span, statement.text)
                return query.id
        known = list(self.all())
        hint = f"{did_you_mean(name.name, known)}indexes are {', '.join(known) or 'none'}"
        raise QueryError(f"unknown index '{name.name}'", hint, name.span, statement.text)

    # ---- making and dropping ----

    def plan(self, statement: CreateIndex, taken: set[str]) -> tuple[Index, QueryPlan]:
        """A new one, and the query that keeps it; ``taken``: names of other tables. Raises QueryError."""
        span, now = statement.name.span, time.time()
        if len(self._network.roots) > 1:
            hint = "ask a gateway with one root"
            raise QueryError("an index is of one network", hint, span, statement.text)
        catalog = self._network.catalog
        motes = [mote for mote in catalog.all() if catalog.unheard(mote.nodeid, now) < _SILENT_S]
        index, plan = plan_index(statement, self._number(statement.text), {*taken, *self.all()}, motes)
        able = sum(mote.board in STORING for mote in motes)
        notes = [self.upkeep(index, 0.0).room(index.keep_ms)]
        if len(index.storing) < able:
            notes.append(
                f"{len(index.storing)} of the {able} motes that can store do: a program has room to name no more"
            )
        return index, dataclasses.replace(plan, notes=tuple(notes))

    def upkeep(self, index: Index, sampling: float) -> Upkeep:
        """What one takes of the motes that there are; ``sampling``: J of a tuple."""
        catalog, now = self._network.catalog, time.time()
        told = ((node, catalog.flash.of(node)) for node in index.storing)
        capacities = {node: flash.capacity for node, flash in told if flash is not None}
        motes = [mote for mote in catalog.all() if catalog.unheard(mote.nodeid, now) < _SILENT_S]
        raised = None
        if index.event is not None:
            raised = catalog.events.rate(event_number(index.event), now)
        raised = None if raised is None else raised / catalog.speed
        return upkeep(index, motes, capacities, sampling, raised)

    def _number(self, sql: str) -> int:
        """A new one's: of its text and the time, so that tuples of one that was dropped are not taken for its own."""
        taken = {index.number for index in self.all().values()}
        number = crc_hqx(f"{sql} {time.time_ns()}".encode(), 0) % INDEX_NUMBERS or 1
        while number in taken:
            number = number % (INDEX_NUMBERS - 1) + 1
        return number

    def removed(self, query: UserQuery) -> None:
        """A query is gone: its index with its tuples, or its answer."""
        ask = self._asks.pop(query.id, None)
        if ask is not None:
            self._network.index_asks.drop(ask)
        if query.index is not None:
            self._tell()
            if self._network.known:
                self._network.drop_index(query.index.number)

    # ---- owners that change ----

    def follow(self, now: float) -> set[str]:
        """Time goes on, in network time: whose owners are gone, have come or have moved has others. Which queries, that is to be
        remembered of."""
        if 0 <= now - self._looked < _LOOK_S:
            return set()
        self._looked = now
        changed = set()
        kept = {query.id: query for query in self._queries.all() if query.index is not None}
        self._found = {key: index for key, index in self._found.items() if key in kept}
        there = self._there() if kept else {}
        for key, query in kept.items():
            assert query.index is not None
            fits = partial(index_fits, text=query.plan.text)
            stored = {place for part in query.index.parts for _, place in part.told}
            placed = {node: place for node, place in there.items() if place != _UNTOLD or place in stored}
            found = amended(query.index, placed, time.time(), fits, self._followed(query.index))
            if found != query.index and _alike(found, self._found.get(key)):
                log.info("index %s: %s", found.name, _change(query.index, found))
                query.index = found
                changed.add(key)
            self._found[key] = found
        if changed or self._askers() != self._asking:
            self._tell()
        return changed

    def _askers(self) -> dict[int, Position | None]:
        """Where motes stand that ask others; None: it is not known."""
        questions = (at_mote(query.sql) for query in self._queries.all() if query.index is None)
        asking = {question.mote for question in questions if question is not None}
        places = self._network.catalog.places() if asking else {}
        return {mote: places.get(mote) for mote in asking}

    def _followed(self, index: Index) -> set[int]:
        """Motes that have given all that is not theirs by the owners as they are."""
        changed = max((moment for part in index.parts for moment in part.since.values()), default=0.0)
        return self._network.catalog.flash.followed(index.number, index.revision, changed + _TOLD_S)

    def _there(self) -> dict[int, Position]:
        """Motes that can store and are there, and where they stand, in dm."""
        return {
            mote.nodeid: (round(mote.xpos * 10), round(mote.ypos * 10))
            for mote in self._network.catalog.all()
            if mote.board in STORING and self._is_there(mote.nodeid)
        }

    def _is_there(self, node: int) -> bool:
        heard = self._network.first.heard_of(node)
        return heard is not None and heard > self._silent.get(node, -math.inf)

    def _tell(self) -> None:
        """Motes are told of the owners as they are now, and who gathers of whom."""
        clauses: dict[str, tuple[Clause, ...]] = {}
        self._asking, places = self._askers(), self._network.catalog.places()
        for query in self._queries.all():
            if query.index is not None and query.index.revision:
                clauses[query.plan.text] = clauses_of(query.index)
            elif query.index is None and at_mote(query.sql) is not None:
                # Where nobody stores what is asked any more it goes on as it was when somebody does.
                with suppress(QueryError):
                    plan = plan_gathering(query.sql, self.all(), places, self._queries.statics.all())
                    clauses[query.plan.text] = plan.clauses
        self._network.amend(clauses)

    # ---- asking ----

    def of(self, plan: QueryPlan) -> Index | None:
        """The index that a query is asked of; None: it is of none."""
        return None if plan.sources is None else self.all().get(plan.sources.table)

    def ask(self, query: UserQuery) -> None:
        """Ask the motes what a query wants to know of an index; of others nothing."""
        index, sources = self.of(query.plan), query.plan.sources
        if index is None or sources is None:
            return
        # Who may be back soon is waited for, until others store for him.
        gone = [node for node in index.holding if node not in index.storing and not self._is_there(node)]
        ask = self._asks[query.id] = IndexAsk(
            index, *question_of(sources, index), gone, self._states(sources, index)[0]
        )
        self._network.index_asks.add(ask)

    def _states(self, sources: SourcePlan, index: Index) -> tuple[StateQuestion | None, StatePrice | None]:
        """What motes are asked in place of tuples, if they are; and, by group, what that takes."""
        states = states_of(sources, index)
        if states is None or states.group is None:
            return states, None
        catalog = self._network.catalog
        price = price_of(states, index, Load(catalog.flash.tuples(index.number), len(catalog.all())))
        return states if price.are_cheaper else None, price

    def advance(self) -> None:
        """What time brings."""
        self._network.advance_index_asks()
        for ask in self._asks.values():
            if ask.over and not ask.looked_at:
                ask.looked_at = True
                self._silent.update(
                    {node: ask.parts[node].told for node in ask.missing if not ask.parts[node].records}
                )

    def rows(self, query: UserQuery) -> Any:
        """The answer, as a batch; None: the query is of no index. Raises NotYetError; QueryError: it is not known any more."""
        index, sources = self.of(query.plan), query.plan.sources
        if index is None or sources is None:
            return None
        ask = self._asks.get(query.id)
        if ask is None:
            raise QueryError("the answer was lost with a restart of the gateway", "ask again")
        if not ask.over:
            raise NotYetError
        if ask.states is not None:
            return answered_by_states(sources, index, ask.states, ask.states.merged(ask.told_states()))
        kept = [one for one in ask.tuples() if not self._is_old(index, one)]
        return answered(sources, index, kept, lambda one: self._utc(index, one))

    def described(self, query: UserQuery) -> dict[str, Any] | None:
        """Which motes were asked and have answered, for JSON; None: the query is of no index."""
        ask = self._asks.get(query.id)
        if ask is None:
            return None
        held = self._network.catalog.flash.tuples(ask.index.number)
        return {**ask.to_dict(), "held": {node: held[node] for node in ask.missing if node in held}}

    def _is_present(self, one: StoredTuple) -> bool:
        return one.session == self._network.first.session & 0xFFFF

    def _is_old(self, index: Index, one: StoredTuple) -> bool:
        # What is of a session before is older than this one, whose time began at 0.
        sampled_ms = one.epoch * index.period_ms if self._is_present(one) else 0
        return bool(self._network.first.clock.now_ms() - sampled_ms > index.keep_ms)

    def _utc(self, index: Index, one: StoredTuple) -> float | None:
        return self._network.first.clock.utc(one.epoch * index.period_ms) if self._is_present(one) else None

    # ---- for people ----

    def status(self) -> list[dict[str, Any]]:
        """Who stores each index, who is away, and how many tuples each had when it told last."""
        return [
            {**index.to_dict(), "tuples": self._network.catalog.flash.tuples(index.number)}
            for index in self.all().values()
        ]

    def explain(self, plan: QueryPlan) -> dict[str, Any] | None:
        """Which zones a query would ask; None: it is of no index."""
        index, sources = self.of(plan), plan.sources
        if index is None or sources is None:
            return None
        states, price = self._states(sources, index)
        ask = IndexAsk(index, *question_of(sources, index), states=states)
        zones = [f"mote {node}" for node in ask.parts]
        lines = ["motes"]
        if len(index.parts) > 1 and states is None:
            lines += [f"  {line}" for line in ask.steps()]
        else:
            lines.append(
                f"  hear the question by one flood; {len(zones)} of the {len(index.holding)} that store index {index.name} answer"
                + (f": {', '.join(zones)}" if zones else "")
            )
        if len(zones) == len(index.holding):
            lines.append("  all zones are asked: a range of an indexed attribute asks fewer")
        if states is not None:
            each = "" if states.group is None else f" for each {states.group.value} that it has"
            lines += [f"  each sends a state of each aggregate{each}, and no tuples"]
            lines += ["gateway", "  makes the answer of them; it ends"]
            return {"query": plan.text, "index": ask.to_dict(), "text": "\n".join(lines)}
        lines += [] if price is None else [f"  {price.line()}"]
        lines += ["gateway", "  keeps what WHERE lets pass, and makes the answer of it; it ends"]
        return {"query": plan.text, "index": ask.to_dict(), "text": "\n".join(lines)}


def _alike(one: Index, other: Index | None) -> bool:
    """Whether two are the same but for when they became so."""
    return other is not None and one.encode() == other.encode()


def _change(before: Index, after: Index) -> str:
    """For people."""
    gone, come = before.storing.keys() - after.storing.keys(), after.storing.keys() - before.storing.keys()
    said = [f"mote {node} is away, others store for it" for node in sorted(gone)]
    said += [f"mote {node} stores" for node in sorted(come)]
    moved = [node for node, place in after.storing.items() if before.storing.get(node, place) != place]
    return "; ".join([*said, *(f"mote {node} has moved" for node in sorted(moved))]) or "owners are settled"
