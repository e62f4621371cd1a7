"""Users come and go: remembered first, and what a user had asked goes with him."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from skerry.service.persistence import Persistence
from skerry.service.query_service import QueryService
from skerry.service.users import User
from skerry.storage.state import StorageError


@dataclass(frozen=True, slots=True)
class Removed:
    """A user who is none any more: ids of his queries that were stopped, and why others were not."""

    stopped: list[str]
    kept: list[str]


class UserService:
    """Methods may be called from any thread; ``lock`` is the gateway's."""

    def __init__(self, lock: threading.RLock, persistence: Persistence, queries: QueryService) -> None:
        self._lock, self._persistence, self._queries = lock, persistence, queries
        self._users = persistence.users

    def of(self, digest: bytes) -> str | None:
        """Whose token has this digest; None: nobody's."""
        return self._users.of(digest)

    def all(self) -> list[User]:
        """By their names."""
        with self._lock:
            return self._users.all()

    def add(self, digests: Mapping[str, bytes]) -> None:
        """Users by their names, all or none. Raises UserError, StorageError: none is added."""
        with self._lock:
            self._users.check_new(list(digests))
            try:
                for name, digest in digests.items():
                    self._users.put(User(name, digest, time.time()))
                self._persistence.save()
            except StorageError:
                for name in digests:
                    self._users.drop(name)
                raise

    def renew(self, name: str, digest: bytes) -> None:
        """Another token for a user: his old one is nobody's, his queries go on. Raises UserError, StorageError: he has the old one."""
        with self._lock:
            before = self._users.get(name)
            try:
                self._users.put(User(name, digest, before.added))
                self._persistence.save()
            except StorageError:
                self._users.put(before)
                raise

    def remove(self, name: str) -> Removed:
        """A user and his queries. What queries of others read or fill stays. Raises UserError; StorageError: he is out, but a restart may
        bring him back."""
        with self._lock:
            self._users.get(name)
            self._users.drop(name)
            stopped, kept = self._queries.withdraw(name)
            # One change of the state: whoever is killed has left both, or neither.
            self._persistence.commit()
            return Removed([query.id for query in stopped], [error.message for error in kept])
