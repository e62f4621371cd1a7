"""What a gateway remembers between runs, as JSON, replaced as a whole; and whether there is room on its disk."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

#: Bytes of the disk that rows leave free at least, so that what users ask can still be remembered.
RESERVE = 4 << 20


class DataError(RuntimeError):
    """The data directory cannot be used; one line."""


class StorageError(RuntimeError):
    """The data directory cannot be written now: the disk is full or broken; one line. Not an OSError, which a line may raise."""


class DataDirectory:
    """One daemon's directory: made if missing, locked against a second daemon."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._saved = 0
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = (path / "lock").open("w")
        except OSError as error:
            raise DataError(f"data directory {path}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(f"data directory {path}: another gateway uses it") from None

    def load(self, name: str) -> dict[str, Any] | None:
        """The JSON object last saved under a name."""
        file = self.path / f"{name}.json"
        try:
            data: dict[str, Any] = json.loads(file.read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise DataError(f"{file}: {error}") from None
        return data

    def save(self, name: str, data: dict[str, Any]) -> None:
        """Replace it; durable when this returns. StorageError: it is as it was."""
        file = self.path / f"{name}.json"
        partial = file.with_suffix(".new")
        text = json.dumps(data).encode()
        try:
            with partial.open("wb") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            partial.replace(file)
            self._sync()
        except OSError as error:
            with suppress(OSError):
                partial.unlink()
            raise StorageError(f"{file}: {error.strerror}") from None
        self._saved = len(text)

    def _sync(self) -> None:
        """The directory itself: that the new file is the one of this name."""
        directory = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def check_room(self) -> None:
        """Raises StorageError when rows would take what the state needs: twice its size, at least :data:`RESERVE`."""
        disk = os.statvfs(self.path)
        free, least = disk.f_bavail * disk.f_frsize, max(RESERVE, 2 * self._saved)
        if free < least:
            raise StorageError(
                f"{self.path}: {free / 1e6:.1f} MB free on its disk, of which {least / 1e6:.1f} MB are kept for the gateway's state"
            )

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()
