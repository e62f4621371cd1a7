"""What a gateway remembers between runs, as JSON, replaced as a whole."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any


class DataError(RuntimeError):
    """The data directory cannot be used; one line."""


class DataDirectory:
    """One daemon's directory: made if missing, locked against a second daemon."""

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
        """Replace it; durable when this returns."""
        file = self.path / f"{name}.json"
        partial = file.with_suffix(".new")
        with partial.open("w") as out:
            json.dump(data, out)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(file)

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()
