"""The key of who runs a gateway: he adds and removes its users, and processes that serve readers for it show it.

Who can read it can read everybody's rows anyway, as it lies beside them.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

FILE = "operator.key"


def make(data: Path) -> str:
    """The key of a data directory, which only its owner may read; the same each time. Raises OSError."""
    file = data / FILE
    if not file.exists():
        unfinished = file.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as out:
            out.write(secrets.token_hex(32) + "\n")
        unfinished.rename(file)
    return read(data)


def read(data: Path) -> str:
    """The key of a gateway's data directory. Raises OSError."""
    return (data / FILE).read_text().strip()
