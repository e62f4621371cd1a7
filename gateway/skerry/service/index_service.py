"""Indexes: tuples that motes store for each other. Who makes and drops them, and what is asked of them."""

from __future__ import annotations

import dataclasses
import time
from binascii import crc_hqx
from typing import Any

from skerry.network.index_asks import IndexAsk
from skerry.network.networks import Networks
from skerry.planner.cost.index_prices import Upkeep, upkeep
from skerry.planner.features.indexing import STORING, Index
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_index
from skerry.sensors.definitions import SensorTable
from skerry.sensors.index_tables import StoredTuple, answered, question_of, table_of
from skerry.service.queries import Queries, UserQuery
from skerry.service.reader import NotYetError
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.index_statements import CreateIndex, DropIndex
from skerry_protocol.limits import INDEX_NUMBERS

#: A mote that has not been heard for so long, in s of network time, has no part in a new index.
_SILENT_S = 3600.0


class IndexService:
    """Not locked: its owner calls it under his lock, but for :meth:`rows`, which may be called from any thread."""

    def __init__(self, network: Networks, queries: Queries) -> None:
        self._network, self._queries = network, queries
        #: By query.
        self._asks: dict[str, IndexAsk] = {}

    # ---- what there is ----

    def all(self) -> dict[str, Index]:
        """By name in lower case."""
        return {
            query.index.name.lower(): query.index for query in self._queries.all() if query.index is not None
        }

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
        if len(index.owners) < able:
            notes.append(
                f"{len(index.owners)} of the {able} motes that can store do: a program has room to name no more"
            )
        return index, dataclasses.replace(plan, notes=tuple(notes))

    def upkeep(self, index: Index, sampling: float) -> Upkeep:
        """What one takes of the motes that there are; ``sampling``: J of a tuple."""
        catalog, now = self._network.catalog, time.time()
        told = ((node, catalog.flash.of(node)) for node in index.owners)
        capacities = {node: flash.capacity for node, flash in told if flash is not None}
        motes = [mote for mote in catalog.all() if catalog.unheard(mote.nodeid, now) < _SILENT_S]
        return upkeep(index, motes, capacities, sampling)

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
        if query.index is not None and self._network.known:
            self._network.drop_index(query.index.number)

    # ---- asking ----

    def of(self, plan: QueryPlan) -> Index | None:
        """The index that a query is asked of; None: it is of none."""
        return None if plan.sources is None else self.all().get(plan.sources.table)

    def ask(self, query: UserQuery) -> None:
        """Ask the motes what a query wants to know of an index; of others nothing."""
        index, sources = self.of(query.plan), query.plan.sources
        if index is None or sources is None:
            return
        ask = self._asks[query.id] = IndexAsk(index, *question_of(sources, index))
        self._network.index_asks.add(ask)

    def advance(self) -> None:
        """What time brings."""
        self._network.advance_index_asks()

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
        kept = [one for one in ask.tuples() if not self._is_old(index, one)]
        return answered(sources, index, kept, lambda one: self._utc(index, one))

    def described(self, query: UserQuery) -> dict[str, Any] | None:
        """Which motes were asked and have answered, for JSON; None: the query is of no index."""
        ask = self._asks.get(query.id)
        return None if ask is None else ask.to_dict()

    def _is_present(self, one: StoredTuple) -> bool:
        return one.session == self._network.first.session & 0xFFFF

    def _is_old(self, index: Index, one: StoredTuple) -> bool:
        age_ms = self._network.first.clock.now_ms() - one.epoch * index.period_ms
        return self._is_present(one) and age_ms > index.keep_ms

    def _utc(self, index: Index, one: StoredTuple) -> float | None:
        return self._network.first.clock.utc(one.epoch * index.period_ms) if self._is_present(one) else None

    # ---- for people ----

    def explain(self, plan: QueryPlan) -> dict[str, Any] | None:
        """Which zones a query would ask; None: it is of no index."""
        index, sources = self.of(plan), plan.sources
        if index is None or sources is None:
            return None
        ask = IndexAsk(index, *question_of(sources, index))
        zones = [f"mote {node}" for node in ask.parts]
        lines = ["motes"]
        if len(index.parts) > 1:
            lines += [f"  {line}" for line in ask.steps()]
        else:
            lines.append(
                f"  hear the question by one flood; {len(zones)} of the {len(index.owners)} that store index {index.name} answer"
                + (f": {', '.join(zones)}" if zones else "")
            )
        if len(zones) == len(index.owners):
            lines.append("  all zones are asked: a range of an indexed attribute asks fewer")
        lines += ["gateway", "  keeps what WHERE lets pass, and makes the answer of it; it ends"]
        return {"query": plan.text, "index": ask.to_dict(), "text": "\n".join(lines)}
