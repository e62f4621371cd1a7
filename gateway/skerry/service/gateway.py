"""The gateway: puts its services together, starts and ends them, and says how all of them are."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from skerry.delivery.window_snapshots import WindowSnapshots
from skerry.execution.matched import MatchedBatch
from skerry.ingest.ingest import Ingest
from skerry.ingest.reorder import Reorder
from skerry.ingest.stored_frames import Lines
from skerry.network.link.links import Links
from skerry.network.network import Common
from skerry.network.networks import Networks
from skerry.network.root import Root
from skerry.service.alarms import Alarms
from skerry.service.api_workers import ApiWorkers
from skerry.service.delivery_service import DeliveryService
from skerry.service.index_service import IndexService
from skerry.service.ingest_service import IngestService
from skerry.service.inventory import Inventory
from skerry.service.join_service import JoinService
from skerry.service.pair_service import PairService
from skerry.service.persistence import Persistence
from skerry.service.queries import Queries
from skerry.service.query_service import QueryService
from skerry.service.reader import BACKLOG_ROWS
from skerry.service.restore import restore
from skerry.service.sensor_service import SensorService
from skerry.service.site import Site
from skerry.service.source_service import SourceService
from skerry.service.user_service import UserService
from skerry.service.watch import STALLED_S, Watch
from skerry.sources.addresses import DEFAULT
from skerry.sources.messages import Job
from skerry.sources.secrets import FOLDER
from skerry.sources.statistics import SourceStatistics
from skerry.spark.index_file import IndexFile
from skerry.spark.join_file import JoinFile
from skerry.spark.master import is_cluster
from skerry.spark.supervisor import SparkDriver
from skerry.storage.block_files import BlockFiles, BlockUpkeep
from skerry.storage.history.history_service import HistoryService
from skerry.storage.history.retention import Retention
from skerry.storage.log import stream_log
from skerry.storage.log.dating import MachineClock
from skerry.storage.state import DataDirectory, StorageError
from skerry.storage.state.database import Row
from skerry.streams.stream import Stream
from skerry.tables.journal import TableJournal
from skerry.tables.of_sensors import AllTables
from skerry.tables.store import TableStore

log = logging.getLogger(__name__)


class Gateway:
    """One daemon. Its services' methods may be called from any thread: ``queries`` is what users ask, ``delivery`` how they get their rows,
    ``ingest`` what motes say, ``site`` what there is and how it is. ``links``: a URL for each root, of which there may be none;
    ``backlog``: rows of the log that a reader may be behind; ``speed``: s of network time in one of this machine's; ``sources``: what
    sources that are no motes may be opened (:mod:`skerry.sources.addresses`), ``secrets``: the folder of what is put into their addresses;
    ``spark_ahead``: Spark starts while what is remembered is read; ``stalled_s``: rows that wait for Spark for so long are an alarm;
    ``joins_itself``: Spark will be there, by which it joins rows."""

    def __init__(
        self,
        links: Sequence[str],
        data: Path,
        master: str = "local[2]",
        retention: Retention | None = None,
        backlog: int = BACKLOG_ROWS,
        tables: Path | None = None,
        speed: float = 1.0,
        sources: Sequence[str] = DEFAULT,
        secrets: Path | None = None,
        *,
        spark_ahead: bool = False,
        stalled_s: float = STALLED_S,
        joins_itself: bool = True,
    ) -> None:
        self._lock = threading.RLock()
        self._data = DataDirectory(data)
        self.alarms = Alarms()
        self._watch = Watch(self.alarms, stalled_s)
        common, urls, by_utc = Common(speed=speed), list(links), len(links) > 1
        self.roots = [Root(url, common) for url in urls]
        self._network = Networks([root.network for root in self.roots], common)
        self.log = stream_log.StreamLog(data, machine_clock=MachineClock())
        self._queries = Queries()
        self.persistence = Persistence(self._data, self._network, self._queries, self.alarms, urls)
        self.inventory = Inventory(self._lock, self._network, self._queries, self.persistence.save)
        self.persistence.tags = self.inventory.rows
        self.persistence.statics = self.inventory.attributes.attribute_rows
        self.persistence.static_values = self.inventory.attributes.value_rows
        self._index, self._files = IndexFile(data), BlockFiles(data)
        self._snapshots = WindowSnapshots(data)
        self.spark = SparkDriver(master, data, self.log.path, self._process)
        self.joins = JoinService(
            self._lock, self._data, self.log, self._queries, self.persistence, self.alarms, self.spark, JoinFile(data),
            lambda: self._network.streams,
        )  # fmt: skip
        self.tables = TableStore(tables or data / "tables", self.spark.read)
        every = AllTables(self.tables, self.persistence.sensors.tuples, self._lock)
        self._journal = TableJournal(data, every, lambda: self.log.rows, self._lock)
        self.history = HistoryService(
            data,
            self.log,
            self._streams,
            lambda: self.delivery.engine.done,
            retention,
            by_utc=by_utc,
            earlier=self._network.earlier,
            speed=speed,
            cluster=self.spark if is_cluster(master) else None,
        )
        statistics = SourceStatistics()
        self.sensors = SensorService(
            self._lock, data, self._queries, self.persistence, self.persistence.sensors, statistics, sources, every,
            self.tables.schemas,
        )  # fmt: skip
        self.delivery = DeliveryService(
            self.log,
            self._network,
            self._queries,
            self.history,
            every,
            self._journal,
            self.persistence,
            self.sensors.store,
            self._index,
            self._files,
            self._snapshots,
            backlog,
            speed,
            by_utc=by_utc,
        )
        self._indexes = IndexService(self._network, self._queries)
        self.sensors.indexes = self._indexes.tables
        self.delivery.index_rows = self._indexes.rows
        self._intake, self._lines = Ingest(Reorder(data, self._network.held_ms), self._network), Lines(data)
        self.pairs = PairService(self._network, self._queries, self._intake.joined)
        self.queries = QueryService(
            self._lock,
            self.log,
            self._network,
            self.roots,
            self._queries,
            self.delivery,
            self.history,
            self.tables,
            self.persistence,
            self.sensors,
            self.joins,
            self.inventory.attributes,
            self._indexes,
            self.pairs,
            joins_itself=joins_itself,
        )
        self.users = UserService(self._lock, self.persistence, self.queries)
        job = Job(
            str(self.sensors.files.resolve()), tuple(sources), str((secrets or data / FOLDER).resolve())
        )
        self.sources = SourceService(
            self._lock, self._data, self.log, self.sensors.store, self._queries, self.persistence, self.alarms, job, self.queries.remove,
            self.joins,
            self.delivery.engine.end_sources, self.delivery.engine.sources_of, statistics,
        )  # fmt: skip
        self.inventory.of_sources = self.sources.tables
        self.delivery.source_trouble = self.sources.trouble_of
        self.delivery.feeds_changed = self.joins.feeds_changed
        self._upkeep = BlockUpkeep(self._files, lambda: self.log.first, (retention or Retention()).log_bytes)
        self.workers = ApiWorkers(self._queries, self.delivery)
        self.ingest = IngestService(
            self._lock, self._data, self.log, self._intake, self._lines, self._network, self.roots, self._queries, self.queries,
            self.delivery, self.persistence, self.alarms, self._watch, self._look, self.joins.tell,
            self._tell_motes,
            self.pairs, self._indexes,
        )  # fmt: skip
        self.site = Site(
            self._lock, self.roots, self._network, self.log, self._queries, self.delivery, self.inventory, self.history,
            self.tables, self.spark, self.workers, self.alarms, self._intake, self.sources, self.joins,
            self.pairs, self._indexes,
        )  # fmt: skip
        for root in self.roots:
            root.listener = self.ingest
        self.links = Links(
            [root.link for root in self.roots], self.ingest.packets, self.ingest.heard, self.ingest.idle
        )
        if spark_ahead:
            self.spark.prepare()
        try:
            self._remember(urls)
        except BaseException:
            self.spark.stop()
            raise

    def _remember(self, urls: list[str]) -> None:
        """What is on the disk. Raises DataError."""
        self.persistence.learnt = self.pairs.rows
        self._restore(urls)
        self._intake.restore(
            self.log, self._network.streams, self._network.source_of, self._network.session_of
        )
        for root in self.roots:
            root.link.endpoint.remember(self._lines.of(root.network.root).stored(self.log))

    def start(self) -> None:
        """Open the links, then Spark in the background. Raises PortError when none can be opened."""
        self.links.open()
        self.links.start()
        self.spark.start()
        self._upkeep.start()
        # Databases are asked in the background from now on.
        self.tables.schemas()
        self._journal.start()
        self.history.start()
        self.sources.start()

    def close(self) -> None:
        """Stop everything; the motes keep their queries."""
        self.links.close()
        self.sources.stop()
        self._journal.stop()
        self.tables.close()
        self.spark.stop()
        self._upkeep.stop()
        self.history.stop()
        self._snapshots.wait()
        self._index.close()
        self.joins.close()
        self.log.close()
        self._data.close()

    def _restore(self, links: list[str]) -> None:
        state = self._data.state.load()
        if state is None:
            return
        try:
            self._restore_from(state, links)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise self._data.state.damaged(f"{type(error).__name__}: {error}") from error
        try:
            self.persistence.publish()
        except StorageError as error:
            # Said, and tried again, once a root is heard.
            log.warning("%s", error)

    def _restore_from(self, state: Mapping[str, Sequence[Row]], links: list[str]) -> None:
        [counters] = state["gateway"]
        self.persistence.users.restore(state["users"])
        sensors = self.persistence.sensors
        sensors.restore(state["sensor_tables"], state["sensor_tuples"], counters["last_sensor_stream"])
        plans = restore(self._queries, state, sensors)
        for query in self._queries.all():
            if not query.past_only:
                self.delivery.subscribe(query)
        self.delivery.engine.resume(self.log.rows)
        running = [query.id for query in self._queries.all() if not query.finished and query.of_motes]
        self._network.restore(state, links, plans, running)
        self._network.route_by(self._queries.srts().values())
        self.inventory.restore(state["tags"], state["static_values"])
        self.pairs.restore(state["learnt_joins"])
        self.delivery.refresh_feeds()
        for query in self._queries.all():
            if query.finished and not query.past_only:
                # No network knows of it, and its rows are read all the same.
                self.delivery.engine.set_feeds(query.id, dict(query.feeds))
        self.delivery.engine.catch_up(self.log.rows)

    def _process(self, batch: MatchedBatch) -> int:
        count = self.delivery.engine.take(batch)
        self.workers.published(batch.first, batch.end)
        return count

    def _tell_motes(self) -> None:
        """What they lack, and what is asked of those that store."""
        self.inventory.attributes.tell()
        self._indexes.advance()

    def _look(self) -> None:
        """How what goes on in the background is."""
        done = self.delivery.engine.done
        self._watch.delivery(done, self.delivery.through(), self.log.rows, self.spark.state)
        self._watch.spark(self.spark.trouble)
        self._watch.api_workers(self.workers.trouble)
        self._watch.source_reading(self.sources.trouble)
        self._watch.history(self.history.trouble)
        self._watch.clock(self.history.clock())
        self._watch.windows(self.delivery.engine.lacking)
        # The last rows before a pause, too.
        self.delivery.engine.keep()

    def _streams(self) -> list[Stream]:
        """All there have been. Without the lock: the proxy asks under its own, and whoever has this one may wait for that."""
        return list(self._network.streams.copy().values())
