"""The fixtures are the testbed's own, as users take them."""

from skerry_testbed.pytest import network

__all__ = ["network"]
