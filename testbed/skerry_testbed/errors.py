"""What the testbed refuses."""

from __future__ import annotations


class TestbedError(RuntimeError):
    """A run that cannot be; the message says what and why."""

    __test__ = False
