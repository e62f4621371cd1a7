"""Settings of all tests: none depends on the machine's speed."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from gateway.tests import java

java.use()

settings.register_profile(
    "skerry", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("skerry")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long first: nobody waits for the last one's end with nothing else to do."""
    items.sort(key=lambda item: not any(item.get_closest_marker(mark) for mark in ("slow", "spark")))
