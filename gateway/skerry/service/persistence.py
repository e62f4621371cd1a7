"""What the gateway remembers of users, queries, networks and tags, and when: before the motes are told."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Iterable
from functools import partial

from skerry.network.networks import Networks
from skerry.sensors.store import SensorStore
from skerry.service.alarms import Alarms
from skerry.service.queries import Queries, readers_of
from skerry.service.users import Users
from skerry.storage.state import DataDirectory, StorageError
from skerry.storage.state.database import Changes, Row

log = logging.getLogger(__name__)


class Persistence:
    """The state on disk. Whoever calls holds the gateway's lock. ``links``: a URL for each root."""

    def __init__(
        self,
        data: DataDirectory,
        network: Networks,
        queries: Queries,
        alarms: Alarms,
        links: list[str],
    ) -> None:
        self._data, self._network, self._queries, self._alarms = data, network, queries, alarms
        self._links = links
        #: Tables of sensors that are no motes.
        self.sensors = SensorStore(partial(readers_of, queries))
        self.users = Users()
        #: Of motes, as they are to be kept.
        self.tags: Callable[[], Iterable[Row]] = list
        #: Static attributes, and what motes are to have of them.
        self.statics: Callable[[], Iterable[Row]] = list
        self.static_values: Callable[[], Iterable[Row]] = list
        #: What is learnt of joins that motes do.
        self.learnt: Callable[[], Iterable[Row]] = list
        #: Queries of which not everything is remembered.
        self._changed: set[str] = set()
        #: Whether other processes find everything.
        self._published = False
        #: Whether something has changed that is not on the disk yet.
        self.unsaved = False

    def note(self, query_id: str) -> None:
        """A query has changed, come or gone: the next :meth:`save` remembers so."""
        self._changed.add(query_id)

    def save(self) -> None:
        """Remember everything. Raises StorageError, with an alarm; it is tried again until it works."""
        self.unsaved = True
        try:
            # First what others read: should that fail, nobody has been promised anything.
            self.publish()
            self._data.state.save(self._changes())
        except StorageError as error:
            self._alarms.on("state", f"what users ask cannot be remembered: {error}")
            raise
        self.unsaved = False
        self._changed.clear()
        self.sensors.saved()
        self.users.saved()
        self._network.remembered()
        self._alarms.off("state")

    def publish(self) -> None:
        """Write for other processes what has changed, the first time everything. Raises StorageError."""
        everything = not self._published
        streams = list(self._network.streams.values()) if everything else self._network.changed_streams()
        if everything:
            queries: dict[str, str | None] = {query.id: query.published() for query in self._queries.all()}
        else:
            found = [(query_id, self._queries.find(query_id)) for query_id in self._changed]
            queries = {
                query_id: query.published() if query is not None else None for query_id, query in found
            }
        texts = {stream.number: json.dumps(stream.to_dict()) for stream in streams}
        self._data.published.publish(texts, queries, everything=everything)
        self._data.published_users.publish(
            self.users.unpublished, self.users.published, everything=everything
        )
        self.users.unpublished.clear()
        self._published = True

    def _changes(self) -> Changes:
        changes, everything = Changes(), self._data.state.fresh
        counters = {
            "id": 1,
            "last_query": self._queries.last,
            "last_group": self._network.placement.last_group,
            "mote_memory": self._network.placement.memory,
            "last_sensor_stream": self.sensors.last_stream,
        }
        changes.whole("gateway", [counters])
        changes.whole("tags", self.tags())
        changes.whole("static_attributes", self.statics())
        changes.whole("static_values", self.static_values())
        changes.whole("learnt_joins", self.learnt())
        changes.whole("ended_queries", map(dataclasses.asdict, self._queries.ended()))
        if everything:
            changes.whole("users", self.users.rows())
            changes.whole("sensor_tables", self.sensors.table_rows())
            changes.whole("sensor_tuples", self.sensors.tuple_rows())
            queries = self._queries.all()
            changes.whole("queries", [query.row() for query in queries])
            changes.whole("query_feeds", [row for query in queries for row in query.feed_rows()])
            changes.whole("handovers", [row for query in queries for row in query.handover_rows()])
        else:
            for gone, rows in self.users.unsaved():
                changes.replace("users", gone, rows)
            for table, gone, rows in self.sensors.unsaved():
                changes.replace(table, gone, rows)
            for query_id in self._changed:
                self._change(changes, query_id)
        self._network.save(changes, self._links, None if everything else self._changed)
        return changes

    def _change(self, changes: Changes, query_id: str) -> None:
        query = self._queries.find(query_id)
        if query is None:
            # With its feeds and handovers.
            changes.remove("queries", {"id": query_id})
            return
        changes.put("queries", query.row())
        changes.replace("query_feeds", {"query": query_id}, query.feed_rows())
        changes.replace("handovers", {"query": query_id}, query.handover_rows())

    def commit(self) -> None:
        """Remember what has changed, then tell the motes: they never hold what a restart would not know. Raises StorageError."""
        self._network.prepare()
        self.save()
        self._network.tell()

    def try_commit(self) -> None:
        """The same where nobody waits for it; :attr:`unsaved` says that it is to be tried again."""
        try:
            self.commit()
        except StorageError as error:
            log.debug("not saved: %s", error)
