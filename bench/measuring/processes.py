"""Processes that are measured: what they hold, and how this one is stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


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


def children(process: int) -> list[int]:
    """What a process has started and has not ended; none of one that has ended."""
    try:
        lists = [(task / "children").read_text() for task in Path(f"/proc/{process}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for text in lists for child in text.split()]


def end_children(limit_s: float = 60) -> None:
    """End what this process has started, also where an interrupt came before anybody knew that it had."""
    deadline = time.monotonic() + limit_s
    for child in children(os.getpid()):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGTERM)
            while os.waitpid(child, os.WNOHANG) == (0, 0):
                if time.monotonic() > deadline:
                    os.kill(child, signal.SIGKILL)
                time.sleep(0.05)


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
