"""What there is behind a gateway, and how it is: motes, tags, tables, the past, links, alarms."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from skerry.catalog.substitutes import Substitute, Wanted
from skerry.ingest.ingest import Ingest
from skerry.network.networks import Networks
from skerry.network.root import Root
from skerry.service.alarms import Alarms
from skerry.service.api_workers import ApiWorkers
from skerry.service.delivery_service import DeliveryService
from skerry.service.index_service import IndexService
from skerry.service.inventory import Inventory
from skerry.service.join_service import JoinService
from skerry.service.pair_service import PairService
from skerry.service.queries import Queries
from skerry.service.source_service import SourceService
from skerry.spark.supervisor import SparkDriver
from skerry.storage.history.history_service import HistoryService
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.state import StorageError
from skerry.tables.directory import shown
from skerry.tables.store import TableStore


class Site:
    """Asked from any thread."""

    def __init__(
        self,
        lock: threading.RLock,
        roots: Sequence[Root],
        network: Networks,
        log: StreamLog,
        queries: Queries,
        delivery: DeliveryService,
        inventory: Inventory,
        history: HistoryService,
        tables: TableStore,
        spark: SparkDriver,
        workers: ApiWorkers,
        alarms: Alarms,
        ingest: Ingest,
        sources: SourceService,
        joins: JoinService,
        pairs: PairService,
        indexes: IndexService,
    ) -> None:
        self._sources, self._joins, self._pairs, self._indexes = sources, joins, pairs, indexes
        self._lock, self._roots, self._network, self._log, self._queries = lock, roots, network, log, queries
        self._delivery, self._inventory, self._history, self._tables = delivery, inventory, history, tables
        self._workers = workers
        self._spark, self._alarms, self._ingest = spark, alarms, ingest

    def attributes(self) -> list[dict[str, Any]]:
        """Those that motes have, with unit, range and cost."""
        return self._network.catalog.attributes(self._queries.statics.all())

    def select(self, sql: str, user: str | None) -> tuple[list[str], list[list[Any]]]:
        """See :meth:`skerry.service.inventory.Inventory.select`."""
        return self._inventory.select(sql, user)

    def motes(self, wanted: Wanted) -> list[dict[str, Any]]:
        """See :meth:`skerry.service.inventory.Inventory.motes`."""
        return self._inventory.motes(wanted)

    def substitutes(self, mote: int, has: Sequence[str], count: int | None) -> list[Substitute]:
        """See :meth:`skerry.service.inventory.Inventory.substitutes`."""
        return self._inventory.substitutes(mote, has, count)

    def tag(self, mote: int, changes: Mapping[str, str | None], user: str) -> dict[str, str]:
        """See :meth:`skerry.service.inventory.Inventory.tag`."""
        return self._inventory.tag(mote, changes, user)

    def tables(self) -> list[dict[str, Any]]:
        """Those that streams can be joined with."""
        return self._tables.described()

    def compact(self) -> dict[str, Any]:
        """Bring the log's rows into files of the past now; says how many, and how the past is. Raises StorageError."""
        try:
            rows = self._history.compact()
        except OSError as error:
            raise StorageError(str(error)) from None
        # How many now, in place of how many ever.
        return {**self._history.status(), "compacted": rows}

    def status(self) -> dict[str, Any]:
        """Roots, log, streams, users and alarms; what stands beside the roots of a link and its session is the first root's,
        if there is one."""
        counters = self._ingest.counters
        with self._lock:
            return {
                "alarms": self._alarms.active(),
                "roots": [root.status() for root in self._roots],
                **{name: value for root in self._roots[:1] for name, value in root.status().items() if name != "root"},
                "motes": len(self._network.catalog.motes()),
                "flash": self._network.catalog.flash.described(),
                "rows": self._log.rows,
                "processed": self._delivery.through(),
                **dataclasses.asdict(counters),
                "history": self._history.status(),
                "paused": {q.id: why for q in self._queries.all() if (why := self._delivery.paused(q)) is not None},
                "spark": {"state": self._spark.state, "batches": self._spark.batches},
                "tables": shown(self._tables.directory),
                "streams": self._network.described_streams(),
                "srts": self._queries.described_srts(None),
                "sources": self._sources.status(),
                "source_streams": self._sources.streams(),
                "joins": [*self._joins.status(), *self._pairs.status()],
                "indexes": self._indexes.status(),
                "users": len(self._queries.all()),
                "api_workers": self._workers.status(),
                "feeds": sum(query.readers for query in self._queries.all()),
            }  # fmt: skip
