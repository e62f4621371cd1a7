"""Processes that are measured: what they hold, and how this one is stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.runner.children import children


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or SIGTERM came, for loops that then end with what they have; the second one ends at once."""
    came: list[int] = []

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _frame: object) -> None:
        came.append(number)
        restore()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(came)
    finally:
        restore()


def processor_seconds(number: int) -> float:
    """Of a process, without those that it started."""
    fields = (Path("/proc") / str(number) / "stat").read_text().rpartition(")")[2].split()
    # proc(5): user and system time, the 14th and 15th field with the two before the name's end.
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def proportional_memory(root: int | None = None) -> int:
    """Bytes that a process (None: this one) and all that it started hold, pages they share counted once."""
    total, left = 0, [os.getpid() if root is None else root]
    while left:
        process = Path("/proc") / str(number := left.pop())
        try:
            text = (process / "smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # has ended
        left += children(number)
        total += sum(1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total
