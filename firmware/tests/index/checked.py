"""The code under test: undefined behaviour ends the process."""

from __future__ import annotations

import ctypes
from functools import cache

from firmware.tests.query.host import FIRMWARE, TRAPS, build
from skerry.index.code import IndexCode

SOURCES = (*sorted((FIRMWARE / "index").glob("*.c")), FIRMWARE / "lib" / "wide.c")


@cache
def checked() -> IndexCode:
    """The firmware's own, compiled for this machine."""
    return IndexCode(ctypes.CDLL(str(build("libskerry_index_checked.so", SOURCES, TRAPS))))
