"""What a text comes to beside all that there is: queries that run, their storage points, tables and attributes."""

from __future__ import annotations

from skerry.network.networks import Networks
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.sensors.gathering import at_mote, plan_gathering
from skerry.service.queries import Queries
from skerry.service.sensor_service import SensorService
from skerry.sql.ast import CreatePoint, CreateSrt, DropPoint, DropSrt, Stop
from skerry.tables.store import TableStore


class Planning:
    """Methods are called under the gateway's lock."""

    def __init__(
        self, queries: Queries, tables: TableStore, sensors: SensorService, network: Networks
    ) -> None:
        self._queries, self._tables, self._sensors, self._network = queries, tables, sensors, network

    def planned(self, sql: str) -> QueryPlan | Stop | CreatePoint | DropPoint | CreateSrt | DropSrt:
        """The plan of a query that motes are asked, or a statement that is none. Raises QueryError."""
        if at_mote(sql) is not None:
            places = self._network.catalog.places()
            return plan_gathering(sql, self._queries.indexes(), places, self._queries.statics.all())
        return plan_query(sql, self._queries.points(), self._tables.schemas(), self._queries.statics.all())

    def gateways(self, sql: str) -> QueryPlan | None:
        """The plan of a query over sensors that are no motes, or of a join at the gateway; None: it is none. Raises QueryError."""
        return None if at_mote(sql) is not None else self._sensors.plan(sql)

    def names(self) -> set[str]:
        """Names of what queries are asked of, in lower case."""
        return {
            "sensors",
            "event",
            *self._queries.points(),
            *self._tables.schemas(),
            *self._sensors.store.tables(),
        }
