"""Queries as a gateway remembers them, planned again when it starts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from skerry.planner.features.srt import Srt, plan_of
from skerry.planner.model.joined_tables import Tables, TableSchema
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.planner import plan_point, plan_query
from skerry.service.queries import Ended, Queries, UserQuery
from skerry.sql.ast import CreatePoint, CreateSrt
from skerry.sql.errors import QueryError
from skerry.sql.surrogates import mended

log = logging.getLogger(__name__)


def restore(queries: Queries, state: Mapping[str, Any]) -> dict[str, QueryPlan]:
    """Fill ``queries`` with those of a state, in the order in which they were asked: a storage point comes before those that read it.
    Returns their plans by id; those that cannot be planned any more are among the ended."""
    queries.last = state.get("last_query", 0)
    for ended in state.get("ended", []):
        queries.end(Ended(*map(mended, ended)))
    plans: dict[str, QueryPlan] = {}
    for entry in state["queries"].values():
        # Its tables may not be there now, which pauses it.
        known = [TableSchema.from_list(schema) for schema in entry.get("tables", [])]
        tables = {schema.name: schema for schema in known}
        srt = Srt.from_list(entry["srt"]) if entry.get("srt") else None
        try:
            if queries.has_ended(entry["started_by"]):
                raise QueryError(f"it was started by query {entry['started_by']}, which has ended")
            plan, point = _plan(queries, mended(entry["sql"]), entry.get("point"), tables, srt)
        except QueryError as error:
            _give_up(queries, entry, error)
            continue
        plans[entry["id"]] = plan
        queries.add(UserQuery.from_dict(entry, plan, point, srt))
    return plans


def _give_up(queries: Queries, entry: Mapping[str, Any], error: QueryError) -> None:
    """A query whose plan cannot be made again: what it read is gone, or this program lacks what another knew."""
    query, user, why = entry["id"], mended(entry["user"]), error.summary
    if entry["finished"]:
        log.warning("query %s of %s has ended and is forgotten: %s", query, user, why)
        return
    log.warning("query %s of %s ends, as it cannot be planned any more: %s", query, user, why)
    why = f"it could not be planned any more when the gateway started again: {why}"
    queries.end(Ended(query, user, mended(entry["sql"]), why))


def _plan(
    queries: Queries, sql: str, number: int | None, tables: Tables, srt: Srt | None
) -> tuple[QueryPlan, Point | None]:
    """The plan of a query beside the storage points there are; ``number``: of the point that it creates, ``srt``: the tree."""
    plan = plan_query(sql, queries.points(), tables, restored=True)
    if isinstance(plan, CreatePoint):
        assert number is not None
        point, plan = plan_point(plan, number, queries.points(), restored=True)
        return plan, point
    if isinstance(plan, CreateSrt):
        assert srt is not None
        return plan_of(srt, plan), None
    assert isinstance(plan, QueryPlan)
    return plan, None
