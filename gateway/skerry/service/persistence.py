"""What the gateway remembers of users, queries, networks and tags, and when: before the motes are told."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection

from skerry.network.networks import Networks
from skerry.service.alarms import Alarms
from skerry.service.queries import Queries
from skerry.storage.state import DataDirectory, StorageError

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
        #: Of motes, as they are to be kept.
        self.tags: Callable[[], object] = list
        #: Queries of which not everything is remembered.
        self._changed: set[str] = set()
        #: Whether something has changed that is not on the disk yet.
        self.unsaved = False

    def note(self, query_id: str) -> None:
        """A query has changed, come or gone: the next :meth:`save` remembers so."""
        self._changed.add(query_id)

    def save(self) -> None:
        """Remember everything. Raises StorageError, with an alarm; it is tried again until it works."""
        self.unsaved = True
        state = {
            **self._network.to_dict(self._links),
            "tags": self.tags(),
            "last_query": self._queries.last,
            "ended": [dataclasses.astuple(ended) for ended in self._queries.ended()],
        }
        try:
            self._data.save("gateway", state, self._entries(self._changed), self._entries)
        except StorageError as error:
            self._alarms.on("state", f"what users ask cannot be remembered: {error}")
            raise
        self.unsaved = False
        self._changed.clear()
        self._network.remembered()
        self._alarms.off("state")

    def _entries(self, ids: Collection[str] | None = None) -> dict[str, dict[str, str | None]]:
        """What is remembered of some queries, and of streams and mote queries that have changed, None: of all; None of what has gone."""
        changed = ids is not None
        ids = [query.id for query in self._queries.all()] if ids is None else ids
        found = [(query_id, self._queries.find(query_id)) for query_id in ids]
        queries = {query_id: query.text() if query is not None else None for query_id, query in found}
        return {"queries": queries, **self._network.texts(ids, changed=changed)}

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
