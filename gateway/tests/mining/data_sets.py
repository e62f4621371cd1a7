"""Data sets that are not part of the project: a test that needs one is left out where it is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data"


def data_set(name: str) -> Path:
    """A data set's file."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path
