"""The data directory of one gateway: no other may use it, and rows leave room on its disk for what users ask."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from skerry.storage.state import database
from skerry.storage.state.database import StateDatabase
from skerry.storage.state.errors import DataError, StorageError
from skerry.storage.state.published import DIRECTORY as PUBLISHED
from skerry.storage.state.published import STREAMS, Publisher
from skerry.storage.state.published_users import UsersPublisher

#: Bytes of the disk that rows leave free at least, so that what users ask can still be remembered.
RESERVE = 4 << 20


class DataDirectory:
    """Made if missing, and locked against a second gateway. Raises DataError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = (path / "lock").open("w")
        except OSError as error:
            raise DataError(f"data directory {path}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise DataError(f"data directory {path}: another gateway uses it") from None
        try:
            _check_state(path)
            self.state = StateDatabase(path)
        except DataError:
            self._lock.close()
            raise
        self.published, self.published_users = Publisher(path), UsersPublisher(path)

    def check_room(self) -> None:
        """Raises StorageError when rows would take what the state needs: twice its size, at least :data:`RESERVE`."""
        disk = os.statvfs(self.path)
        free, least = disk.f_bavail * disk.f_frsize, max(RESERVE, 2 * self.state.size())
        if free < least:
            raise StorageError(
                f"{self.path}: {free / 1e6:.1f} MB free on its disk, of which {least / 1e6:.1f} MB are kept for the gateway's state"
            )

    def close(self) -> None:
        """Close the state and release the lock."""
        self.state.close()
        self._lock.close()


def _check_state(path: Path) -> None:
    """Raises DataError where there is no state, or an empty one, and there has been one: rows of the log would be taken for those of other
    queries."""
    file, published = path / database.FILE, path / PUBLISHED / STREAMS
    size = file.stat().st_size if file.exists() else None
    if not size and published.exists():
        what = "it is not there" if size is None else "it is empty"
        raise DataError(
            f"{file}: {what}, though a gateway has saved one: put it back from a copy, or take another data directory"
        )
