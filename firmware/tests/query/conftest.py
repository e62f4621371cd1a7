"""Fixtures over the firmware's query engine, compiled for this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from firmware.tests.query import host
from firmware.tests.query.mote import Mote


@pytest.fixture(scope="session")
def query_library() -> Path:
    """The query engine with its environment as a shared library."""
    return host.query_library()


@pytest.fixture
def mote(query_library: Path) -> Mote:
    """A mote just booted, at local time 0."""
    return Mote(query_library)


@pytest.fixture
def boot(query_library: Path) -> Callable[[int], Mote]:
    """Boots a mote at a local time in ticks."""
    return lambda local: Mote(query_library, local)


@pytest.fixture(scope="session")
def fuzzer() -> Path:
    """The fuzzer under AddressSanitizer and UndefinedBehaviorSanitizer."""
    return host.build("fuzz_query", (*host.QUERY, host.HERE / "fuzz.c"), host.SANITIZERS)
