"""Queries as a gateway remembers them, planned again when it starts."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence

from skerry.catalog.catalog import Catalog
from skerry.index.placement import Position
from skerry.planner.features.indexing import Index
from skerry.planner.features.indexing import plan_of as plan_of_index
from skerry.planner.features.srt import Srt, plan_of
from skerry.planner.model.joined_tables import Tables, TableSchema
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.planner import plan_point, plan_query
from skerry.sensors.gathering import at_mote, plan_gathering
from skerry.sensors.index_tables import table_of
from skerry.sensors.planning import planned
from skerry.sensors.store import SensorStore
from skerry.service.queries import Ended, Queries, UserQuery
from skerry.sql.ast import CreatePoint, CreateSrt
from skerry.sql.errors import QueryError
from skerry.storage.state.database import Row

log = logging.getLogger(__name__)

#: A query's text, and the numbers of the storage points that there are.
Asked = tuple[str | int, ...]


def restore(
    queries: Queries, state: Mapping[str, Sequence[Row]], sensors: SensorStore
) -> dict[str, QueryPlan]:
    """Fill ``queries``, beside these tables of sensors, with those of a state, in the order in which they were asked: a storage point comes
    before those that read it. Returns their plans by id; those that cannot be planned any more are among the ended."""
    [counters] = state["gateway"]
    queries.last = counters["last_query"]
    queries.statics.restore(state["static_attributes"])
    for ended in _oldest_first(state["ended_queries"]):
        queries.end(Ended(ended["id"], ended["user"], ended["sql"], ended["why"]))
    feeds, handovers = _by_query(state["query_feeds"]), _by_query(state["handovers"])
    places = Catalog.from_rows(state["motes"], ()).places()
    plans: dict[str, QueryPlan] = {}
    made: dict[Asked, QueryPlan] = {}
    for row in _oldest_first(state["queries"]):
        # Its tables may not be there now, which pauses it.
        known = [TableSchema.from_list(schema) for schema in json.loads(row["tables"])]
        tables = {schema.name: schema for schema in known}
        srt = Srt.from_list(json.loads(row["srt"])) if row["srt"] is not None else None
        index = Index.from_list(json.loads(row["stored_index"])) if row["stored_index"] is not None else None
        try:
            if row["started_by"] is not None and queries.has_ended(row["started_by"]):
                raise QueryError(f"it was started by query {row['started_by']}, which has ended")
            # What many ask in the same words beside the same storage points is planned once.
            asked = None if tables or row["srt"] or row["point"] else (row["sql"], *queries.point_numbers())
            if index is not None:
                plan, point = plan_of_index(index, row["sql"]), None
            elif asked in made:
                plan, point = made[asked], None
            else:
                plan, point = _plan(queries, row["sql"], row["point"], tables, srt, sensors, places)
            if asked is not None and index is None:
                made[asked] = plan
        except QueryError as error:
            _give_up(queries, row, error)
            continue
        query = row["id"]
        plans[query] = plan
        queries.add(UserQuery.from_rows(row, feeds[query], handovers[query], plan, point, srt, index))
    return plans


def _oldest_first(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: int(row["id"]))


def _by_query(rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[row["query"]].append(row)
    return found


def _give_up(queries: Queries, row: Row, error: QueryError) -> None:
    """A query whose plan cannot be made again: what it read is gone, or this program lacks what another knew."""
    query, user, why = row["id"], row["user"], error.summary
    if row["finished"]:
        log.warning("query %s of %s has ended and is forgotten: %s", query, user, why)
        return
    log.warning("query %s of %s ends, as it cannot be planned any more: %s", query, user, why)
    why = f"it could not be planned any more when the gateway started again: {why}"
    queries.end(Ended(query, user, row["sql"], why))


def _plan(
    queries: Queries,
    sql: str,
    number: int | None,
    tables: Tables,
    srt: Srt | None,
    sensors: SensorStore,
    places: Mapping[int, Position],
) -> tuple[QueryPlan, Point | None]:
    """The plan of a query beside the storage points there are; ``number``: of the point that it creates, ``srt``: the tree, ``places``:
    where motes stand."""
    if at_mote(sql) is not None:
        return plan_gathering(sql, queries.indexes(), places, queries.statics.all()), None
    indexes = {name: table_of(index) for name, index in queries.indexes().items()}
    # What was a file's when the query was asked is so still, whatever has been called alike since.
    there = {**sensors.tables(), **indexes}
    of_sensors = {name: table for name, table in there.items() if name not in tables}
    asked = planned(sql, of_sensors, sensors.shapes, statics=queries.statics.all(), files=lambda: tables)
    if asked is not None:
        return asked, None
    plan = plan_query(sql, queries.points(), tables, queries.statics.all(), restored=True)
    if isinstance(plan, CreatePoint):
        assert number is not None
        point, plan = plan_point(plan, number, queries.points(), queries.statics.all(), restored=True)
        return plan, point
    if isinstance(plan, CreateSrt):
        assert srt is not None
        return plan_of(srt, plan), None
    assert isinstance(plan, QueryPlan)
    return plan, None
