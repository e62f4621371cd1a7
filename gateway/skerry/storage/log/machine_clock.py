"""This machine's clocks: the one that people set, and the one that counts since it was started."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path


def started() -> float:
    """UTC of this machine's start in s, as its clock has it now: it moves by what the clock is set by."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def since_start() -> float:
    """S since this machine's start, asleep or not; nobody sets them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@cache
def boot() -> str:
    """The name of this start of the machine (random(4), boot_id)."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
