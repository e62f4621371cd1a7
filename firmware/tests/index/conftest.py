"""The code under test."""

from __future__ import annotations

import pytest

from firmware.tests.index.checked import checked
from skerry.index.code import IndexCode


@pytest.fixture(scope="session")
def index() -> IndexCode:
    """The firmware's own, compiled for this machine; undefined behaviour ends the process."""
    return checked()
