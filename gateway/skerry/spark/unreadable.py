"""What a worker says that does not see the files that are there."""

from __future__ import annotations

import socket
from pathlib import Path


class UnreadableError(Exception):
    """A worker does not see what is there; Spark asks another one."""

    @classmethod
    def of(cls, what: str, path: Path) -> UnreadableError:
        """``what`` should be in a file or directory."""
        return cls(
            f"{what} not in {path} on {socket.gethostname()}: every worker must see the gateway's data directory at the same path"
        )
