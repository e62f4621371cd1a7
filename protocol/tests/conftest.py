"""Settings of the protocol's tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes is the machine's affair.
settings.register_profile("skerry", deadline=None)
settings.load_profile("skerry")
