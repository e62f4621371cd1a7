"""What a query would do, of what there is now: explain, of any statement that has a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from skerry.network.networks import Networks
from skerry.network.root import Root
from skerry.planner.features.history import explain_past
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_point, plan_query
from skerry.service.explain import explain, explain_text
from skerry.service.explain_join import describe_join, join_lines
from skerry.service.index_service import IndexService
from skerry.service.join_choice import STRATEGIES, Choice, JoinChoices
from skerry.service.join_text import bare_of, learning_text, parsed
from skerry.service.pair_learning import learning_lines
from skerry.service.pair_service import PairService
from skerry.service.planning import Planning
from skerry.service.queries import Queries
from skerry.service.sensor_service import SensorService
from skerry.sql import attribute_statements, index_statements, sensor_statements, stream_statements
from skerry.sql.ast import CreatePoint, CreateSrt, DropPoint, DropSrt, Stop
from skerry.sql.errors import QueryError
from skerry.sql.index_statements import DropIndex
from skerry.sql.join_strategies import JoinHints
from skerry.sql.stream_statements import DropStream, ShowStreams


def _check_asks(sql: str) -> None:
    """Raises QueryError for a statement about tables, streams or attributes, which is done at once."""
    done = sensor_statements.is_one(sql) or attribute_statements.is_one(sql)
    if done or isinstance(stream_statements.parse(sql), DropStream | ShowStreams):
        begin = re.sub(r"--[^\n]*", "", sql).split()[0].upper()
        raise QueryError(f"{begin} is done at once, and has no plan", "explain a SELECT")


class Explainer:
    """Methods are called under the gateway's lock."""

    def __init__(
        self,
        network: Networks,
        roots: Sequence[Root],
        queries: Queries,
        sensors: SensorService,
        indexes: IndexService,
        pairs: PairService,
        planning: Planning,
        choices: JoinChoices,
    ) -> None:
        self._network, self._roots, self._queries = network, roots, queries
        self._sensors, self._indexes, self._pairs = sensors, indexes, pairs
        self._planning, self._choices = planning, choices

    def explain(self, sql: str) -> dict[str, Any]:
        """What would run where. Raises QueryError."""
        _check_asks(sql)
        if index_statements.is_one(sql):
            return self._explained_index(sql)
        running = self._running(sql)
        choice = self._choices.of_hosts(sql) if running is None else None
        of_sources = self._planning.gateways(sql) if running is None and choice is None else None
        if running is not None:
            sql = running
        if choice is not None:
            sql = choice.sql
        if of_sources is not None:
            choice = self._choices.of(sql, of_sources)
            if choice is None or not choice.by_motes:
                return self._indexes.explain(of_sources) or self._explained(of_sources, choice)
            sql = choice.sql
        plan = self._planning.planned(sql)
        if isinstance(plan, Stop | DropPoint | DropSrt):
            raise QueryError("what stops queries has no plan", "explain a SELECT")
        if isinstance(plan, CreatePoint):
            _, plan = plan_point(
                plan, self._queries.point_number(sql), self._queries.points(), self._queries.statics.all()
            )
        if isinstance(plan, CreateSrt):
            _, plan = self._queries.plan_srt(plan, self._network.roots, self._network.catalog.values)
        if plan.history is not None and plan.history.only:
            return explain_past(plan)
        if not self._roots:
            # Nobody's to ask.
            self._network.check_heard([])
        return self._explain(plan, choice if choice is not None else self._choice(sql, plan))

    def _running(self, sql: str) -> str | None:
        """The text of a query that runs and was asked so, with the strategy that was taken; None: there is none."""
        select = parsed(sql)
        if select is None or select.strategy is not None:
            return None
        hints = select.hints or JoinHints()
        more, bare = learning_text(hints), bare_of(sql, select)
        texts = (f"{bare} JOIN {words}{more}" for words in STRATEGIES) if hints.naive is None else ()
        return next(filter(self._pairs.runs, texts), None)

    def _choice(self, sql: str, plan: QueryPlan) -> Choice | None:
        """Of a query that says where it is joined; of one that runs, by what is learnt of it."""
        if plan.pairing is None:
            return None
        rates = self._pairs.rates(plan)
        choice = self._choices.of(sql, None, rates)
        learning = self._pairs.learning(plan)
        if choice is None or learning is None:
            return choice
        changes = learning["changes"]
        why = changes[-1]["why"] if changes else "it was taken when the query was asked"
        return replace(choice, taken=self._pairs.strategy(plan), why=why)

    def _explained_index(self, sql: str) -> dict[str, Any]:
        """Of CREATE INDEX."""
        statement = index_statements.parse(sql)
        if isinstance(statement, DropIndex):
            raise QueryError("what drops an index has no plan", "explain CREATE INDEX, or a SELECT")
        self._network.check_heard([root.link for root in self._roots])
        index, plan = self._indexes.plan(statement, self._planning.names())
        described = self._explain(plan)
        upkeep = self._indexes.upkeep(index, described["motes"]["energy_per_epoch"])
        stored = [
            f"{index.names(part)}: stored by mote{'s' * (len(part.storing) > 1)} {', '.join(map(str, sorted(part.storing)))}"
            for part in index.parts
        ]
        text = "\n".join((described["text"], *stored, upkeep.energy_line()))
        return {**described, "index": {**index.to_dict(), "upkeep": upkeep.to_dict()}, "text": text}

    def _explain(self, plan: QueryPlan, choice: Choice | None = None) -> dict[str, Any]:
        """What motes run of a query; ``choice``: where its pairs are joined."""
        first = self._network.first
        described = explain(plan, self._network.catalog, first.demand, first.now())
        if plan.pairing is None:
            return {**described, "text": explain_text(described)}
        _, placed = self._pairs.places_now(plan)
        considered = choice.described() if choice is not None else None
        runs, learning = self._pairs.strategy(plan).lower(), self._pairs.learning(plan)
        lines = [explain_text(described), *join_lines(considered, [*placed.lines(), *placed.group_lines()])]
        if learning is not None:
            lines += learning_lines(learning, plan.pairing.aliases, runs)
        silent = self._pairs.silent(plan)
        lines += [f"  no answers of {' with '.join(map(str, one['pair']))}: {one['why']}" for one in silent]
        return {
            **described,
            "placed": {
                **(considered or {}),
                "runs": runs,
                **placed.described(),
                "silent": silent,
                "learning": learning,
            },
            "text": "\n".join(lines),
        }

    def _explained(self, plan: QueryPlan, choice: Choice | None) -> dict[str, Any]:
        """Of a query over sensors that are no motes, or a join of such and motes; ``choice``: of motes with motes."""
        described = self._sensors.explain(plan)
        join = plan.sources.join if plan.sources is not None else None
        questions = join.questions if join is not None and self._roots and plan.history is None else ()
        asked = {}
        for text in questions:
            one = plan_query(text, statics=self._queries.statics.all())
            assert isinstance(one, QueryPlan)
            asked[text] = self._explain(one)
        placed = None
        if asked and join is not None and choice is not None:
            placed = choice.described() or describe_join(
                join, self._network.catalog, self._queries.statics.all(), choice.why, choice.hints
            )
        lines = [described["text"], *(f"\n{text}\n{one['text']}" for text, one in asked.items())]
        lines += ["", *join_lines(placed)] if placed is not None else []
        return (
            {**described, "motes": asked, "placed": placed, "text": "\n".join(lines)} if asked else described
        )
