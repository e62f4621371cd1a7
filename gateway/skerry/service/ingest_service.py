"""The motes' side: what roots say goes to the log, and what time brings to the networks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from construct import Container

from skerry.ingest.ingest import Brought, Ingest
from skerry.ingest.stored_frames import Lines
from skerry.network.link.stamp import Stamp
from skerry.network.networks import Networks
from skerry.network.root import Root
from skerry.service.alarms import Alarms
from skerry.service.delivery_service import DeliveryService
from skerry.service.index_service import IndexService
from skerry.service.pair_service import PairService
from skerry.service.persistence import Persistence
from skerry.service.queries import Queries
from skerry.service.query_service import QueryService
from skerry.service.watch import Watch
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.state import DataDirectory, StorageError
from skerry_protocol.codec import Packet

log = logging.getLogger(__name__)


class IngestService:
    """Called by the links' thread. ``look``: at how everything else is, now and then; ``tell_joins``: before rows come; ``tell_motes``:
    what they lack, now and then."""

    def __init__(
        self,
        lock: threading.RLock,
        data: DataDirectory,
        stream_log: StreamLog,
        ingest: Ingest,
        lines: Lines,
        network: Networks,
        roots: Sequence[Root],
        queries: Queries,
        users: QueryService,
        delivery: DeliveryService,
        persistence: Persistence,
        alarms: Alarms,
        watch: Watch,
        look: Callable[[], None],
        tell_joins: Callable[[], None],
        tell_motes: Callable[[], None],
        pairs: PairService,
        indexes: IndexService,
    ) -> None:
        self._pairs, self._indexes = pairs, indexes
        self._tell_joins = tell_joins
        self._lock, self._data, self._log, self._ingest, self._lines = lock, data, stream_log, ingest, lines
        self._network, self._roots, self._queries, self._users = network, roots, queries, users
        self._delivery, self._persistence = delivery, persistence
        self._alarms, self._watch, self._look, self._tell_motes = alarms, watch, look, tell_motes
        self._advanced = 0.0
        #: Whether a root has said hello of which not all is remembered yet.
        self._greeted = False

    def packets(self, brought: Sequence[tuple[int, list[Packet]]]) -> None:
        """What roots, by their place, have brought together; returns when everything is durable. StorageError: nothing was taken in."""
        with self._lock:
            taken = [
                (self._roots[place], packets)
                for place, packets in brought
                if self._roots[place].refused is None
            ]
            try:
                if self._persistence.unsaved:
                    # The log must not name streams that a restart would not know.
                    self._persistence.commit()
                self._tell_joins()
                self._data.check_room()
                rows = [
                    Brought(packets, self._network.source(root.network), self._lines.of(root.network.root))
                    for root, packets in taken
                ]
                self._ingest.store_all(rows, self._log, self._network.now_ms())
            except (StorageError, OSError) as error:
                text = f"{self._log.path}: {error.strerror}" if isinstance(error, OSError) else str(error)
                self._alarms.on("intake", f"no rows are taken in: {text}; motes and root keep what they can")
                for root, _ in taken:
                    root.network.missed()
                raise StorageError(text) from None
            self._alarms.off("intake")
            for root, packets in taken:
                root.network.hear(packets)
            if any(isinstance(packet, Stamp) for _, packets in taken for packet in packets):
                self._tell()

    def _tell(self) -> None:
        """Epochs whose time is over by what the root has said of its time."""
        try:
            self._ingest.tell(self._log)
        except OSError as error:
            # :meth:`_release` says so, and tries again.
            log.debug("not told: %s", error)

    def hello(self, root: Root, hello: Container[Any]) -> None:
        with self._lock:
            root.refused = root.clash(self._roots, hello) or root.renewed(hello)
            # At once: a root that begins another session does so before anybody looks.
            self._watch.root(root)
            if root.refused is not None:
                return
            if root.network.greet(hello):
                self._delivery.refresh_feeds()
            if root.network.gap is not None and self._log.dating is not None:
                self._log.dating.went_on(*root.network.gap)
            self._persistence.unsaved = self._greeted = True

    def heard(self) -> None:
        """All that has come by now was read: of roots that said hello together is remembered once, before the first of their rows is
        taken in."""
        if self._greeted:
            with self._lock:
                self._greeted = False
                self._persistence.try_commit()

    def idle(self) -> None:
        """Now and then."""
        for root in self._roots:
            self._watch.root(root)
        self._look()
        self._advance()

    def _advance(self) -> None:
        if time.monotonic() - self._advanced < 1.0 or not self._network.known:
            return
        self._advanced = time.monotonic()
        with self._lock:
            self._release()
            changed = self._go_on()
            self._delivery.drop_expired_feeds()
            self._watch.motes(self._network.catalog, self._network.roots)
            self._tell_motes()
            abandoned = [query for query in self._queries.all() if query.abandoned(time.monotonic())]
            for query in abandoned:
                log.info("query %s of %s is stopped: nobody reads it any more", query.id, query.user)
                self._users.remove(query)
            if changed or abandoned or self._persistence.unsaved or self._network.clock_drifted():
                self._persistence.try_commit()

    def _release(self) -> None:
        """Rows that were held back."""
        try:
            self._tell_joins()
            self._ingest.release(self._log, self._network.now_ms())
        except (StorageError, OSError) as error:
            text = f"{self._log.path}: {error.strerror}" if isinstance(error, OSError) else str(error)
            self._alarms.on("intake", f"rows wait beside the log: {text}")

    def _go_on(self) -> bool:
        """What time brings to the networks; whether that is anything."""
        learnt = self._pairs.follow(self._network.first.now())
        amended = self._indexes.follow(self._network.first.now())
        for query_id in amended:
            self._persistence.note(query_id)
        changed, finished = self._network.advance()
        for user in finished:
            query = self._queries.find(user)
            if query is not None:
                query.finished = True
                self._persistence.note(query.id)
        if changed:
            self._delivery.refresh_feeds()
        return changed or learnt or bool(amended)
