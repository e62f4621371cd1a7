"""Samples lie at multiples of their period, in network time in ms."""

from __future__ import annotations


def ceiling(time_ms: int, period_ms: int) -> int:
    """The first multiple of the period at or after a time."""
    return -(-time_ms // period_ms) * period_ms


def last_sample_before(time_ms: int, period_ms: int) -> int:
    """The last multiple of the period before a time."""
    return (time_ms - 1) // period_ms * period_ms
