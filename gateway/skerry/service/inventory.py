"""What there is, asked by users: motes by place and tags, substitutes, the catalog's tables in SQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from skerry.catalog.catalog import Mote
from skerry.catalog.substitutes import Substitute, Wanted, known_mote, silent, substitutes
from skerry.catalog.table_select import Table, select
from skerry.catalog.tags import Tags
from skerry.network.networks import Networks
from skerry.service.attribute_service import AttributeService
from skerry.service.queries import Queries
from skerry.service.system_tables import tables
from skerry.storage.state import StorageError


class Inventory:
    """The gateway's knowledge of motes, streams and queries, and users' tags, which it owns.

    Public methods may be called from any thread; ``lock`` is the gateway's, ``save`` makes what has changed durable.
    """

    def __init__(
        self, lock: threading.RLock, network: Networks, queries: Queries, save: Callable[[], None]
    ) -> None:
        self._lock, self._network, self._queries, self._save = lock, network, queries, save
        self._tags = Tags()
        #: Tables of the catalog about sources that are no motes.
        self.of_sources: Callable[[], dict[str, Table]] = dict
        #: Static attributes, of which a mote's are shown with its tags, and set like them.
        self.attributes = AttributeService(lock, network, queries, self._tags, save)

    def select(self, sql: str, user: str | None = None) -> tuple[list[str], list[list[Any]]]:
        """Columns and rows of a SELECT over the catalog's tables, as far as a user may see them. Raises QueryError."""
        with self._lock:
            found = tables(
                self._network.catalog,
                [*self._tags.all(), *self._constants()],
                list(self._network.streams.values()),
                self._network.current,
                self._queries.all() if user is None else self._queries.of(user),
                self._queries.described_points(user),
                self._queries.described_srts(user),
                time.time(),
                self._queries.statics.all(),
            )
        return select(sql, {**found, **self.of_sources()})

    def tag(self, nodeid: int, changes: Mapping[str, str | None], user: str) -> dict[str, str]:
        """Set a mote's tags, take away those that are None; returns all it has. Raises PlaceError, TagError, StorageError."""
        with self._lock:
            mote = known_mote(self._network.catalog, nodeid)
            of_attributes = {
                key: value for key, value in changes.items() if self.attributes.number(key) is not None
            }
            values = {key: self.attributes.value(key, value) for key, value in of_attributes.items()}
            own = {key: value for key, value in changes.items() if key not in of_attributes}
            before = self._tags.rows()
            self._tags.set(nodeid, own, user, time.time())
            try:
                if own:
                    self._save()
                self.attributes.want(nodeid, values)
            except StorageError:
                self._tags.restore(before)
                raise
            return self._of(mote)

    def motes(self, wanted: Wanted) -> list[dict[str, Any]]:
        """Motes that are meant, nearest first, with their tags and, of a place, the distance in m."""
        with self._lock:
            catalog, now = self._network.catalog, time.time()
            described = {mote["nodeid"]: mote for mote in catalog.motes()}
            found = [mote for mote in catalog.all() if wanted.fits(mote, self._of(mote))]
            return [
                {
                    **described[mote.nodeid],
                    "tags": self._of(mote),
                    "silent": silent(mote, catalog, now),
                    **({} if wanted.near is None else {"distance": wanted.distance(mote)}),
                }
                for mote in sorted(found, key=lambda mote: (wanted.distance(mote), mote.nodeid))
            ]

    def _constants(self) -> Iterator[tuple[Any, ...]]:
        """Motes' static attributes as rows of tags."""
        for mote in self._network.catalog.all():
            for name, value in self.attributes.of(mote).items():
                yield mote.nodeid, name, str(value), None, None

    def _of(self, mote: Mote) -> dict[str, str]:
        """A mote's tags, and its static attributes, by name."""
        return self._tags.of(mote.nodeid) | {
            key: str(value) for key, value in self.attributes.of(mote).items()
        }

    def substitutes(self, nodeid: int, has: Sequence[str] = (), count: int | None = None) -> list[Substitute]:
        """Motes that could stand in for one; see :func:`skerry.catalog.substitutes.substitutes`. Raises PlaceError."""
        with self._lock:
            return substitutes(self._network.catalog, nodeid, time.time(), has, count)

    def rows(self) -> list[dict[str, Any]]:
        """The tags, to be kept."""
        return self._tags.rows()

    def restore(self, rows: Sequence[Mapping[str, Any]], values: Sequence[Mapping[str, Any]]) -> None:
        """What :meth:`rows` said, and the attributes' values."""
        self.attributes.restore(values)
        self._tags.restore(rows)
