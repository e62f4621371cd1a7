"""Fixtures of the data source's tests that need no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.tests.published import PLAIN, Written


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Written]:
    """Rows of one mote and one stream come."""
    made = Written(tmp_path / "data", [PLAIN], segment_rows=20)
    yield made
    made.close()
