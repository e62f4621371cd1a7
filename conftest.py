"""Settings of all tests: none depends on the machine's speed."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from gateway.tests import java

java.use()

settings.register_profile(
    "skerry", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("skerry")
