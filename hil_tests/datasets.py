"""The real data sets that some tests and benchmarks read. They lie beside the project, and may be missing."""

from __future__ import annotations

import sys
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def data(name: str) -> Path:
    """A file of the data sets, which lie beside the project. A program ends where one is missing, and says so: that is no failure."""
    path = DATA / name
    if not path.exists():
        print(f"skipped: {path} is not here", file=sys.stderr)
        raise SystemExit(0)
    return path
