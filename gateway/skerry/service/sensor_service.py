"""Tables of sensors that are no motes: statements that change them, and what queries over them are."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.source_plans import JoinPlan
from skerry.sensors.planning import planned
from skerry.sensors.store import Done, SensorStore
from skerry.service.persistence import Persistence
from skerry.service.queries import Queries
from skerry.sql import sensor_statements
from skerry.storage.state import StorageError

#: The folder in the data directory that COPY and sources read files from.
FILES = "streams"


class SensorService:
    """Methods are called under ``lock``, or take it."""

    def __init__(
        self,
        lock: threading.RLock,
        data: Path,
        queries: Queries,
        persistence: Persistence,
        store: SensorStore,
    ) -> None:
        self._lock, self._queries, self._persistence = lock, queries, persistence
        self.store, self.files = store, data / FILES

    def run(self, sql: str, user: str) -> Done | None:
        """Do what a statement about such tables says; None: it is none. Raises QueryError, StorageError: nothing has changed."""
        if not sensor_statements.is_one(sql):
            return None
        statement = sensor_statements.parse(sql)
        with self._lock:
            before = self.store.snapshot()
            done = self.store.run(statement, user, self.files, sql)
            if self.store.changed:
                try:
                    self._persistence.save()
                except StorageError:
                    self.store.put_back(before)
                    raise
            return done

    def explain(self, plan: QueryPlan) -> dict[str, Any]:
        """What would be opened for a query."""
        sources = plan.sources
        assert sources is not None
        if sources.join is not None:
            return self._explain_join(sources.join)
        found = self.store.tuples(sources.table)
        assert found is not None
        count, all_ = len(found.chosen(sources.chosen)), len(found.rows)
        if sources.stream is None:
            text = f"static columns of {found.table.name} answer it: no source is opened, and it ends"
        else:
            text = f"{count} of the {all_} sources of {found.table.name} are opened, if no other query has opened them"
        return {
            "table": found.table.name,
            "stream": sources.stream,
            "sources": count,
            "of": all_,
            "text": text,
        }

    def _explain_join(self, join: JoinPlan) -> dict[str, Any]:
        """What would be opened for a join, and how it would run."""
        lines, aliases = [f"a join by {join.reason}"], []
        for one in join.tables:
            found = self.store.tuples(one.table)
            assert found is not None
            count, all_ = len(found.chosen(one.chosen)), len(found.rows)
            aliases.append({"alias": one.alias, "table": found.table.name, "sources": count, "of": all_})
            lines.append(f"{one.alias}: {count} of the {all_} sources of {found.table.name}")
        return {"algorithm": join.algorithm, "aliases": aliases, "text": "\n".join(lines)}

    def plan(self, sql: str) -> QueryPlan | None:
        """The plan of a query over such a table; None: it is over none. Raises QueryError."""
        with self._lock:
            return planned(sql, self.store.tables(), self.store.shapes)
