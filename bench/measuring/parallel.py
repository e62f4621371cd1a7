"""Runs that have nothing to do with each other, on all of the machine's cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def on_all_cores(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """The function's value for each item, in their order, as soon as it is known. What runs ends with the caller, and with Ctrl-C."""
    # A process that was interrupted would print where it was; the pool ends it.
    with multiprocessing.Pool(min(os.cpu_count() or 1, len(items) or 1), _ignore_interrupts) as pool:
        yield from pool.imap(function, items)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
