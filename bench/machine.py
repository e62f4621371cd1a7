"""The machine a benchmark ran on, and the table it prints."""

from __future__ import annotations

import os
import platform
import signal
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def machine() -> str:
    """Its size, in words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}"


def table(title: str, rows: Sequence[tuple[str, str, str]]) -> None:
    """Print one Markdown table: what, measured, goal."""
    print(f"\n### {title}\n\n{machine()}\n")
    print("| what | measured | goal |\n| --- | --- | --- |")
    for row in rows:
        print(f"| {' | '.join(row)} |")


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


def proportional_memory(root: int | None = None) -> int:
    """Bytes that a process (None: this one) and all that it started hold, pages they share counted once."""
    total, left = 0, [os.getpid() if root is None else root]
    while left:
        process = Path("/proc") / str(left.pop())
        try:
            text = (process / "smaps_rollup").read_text()
            for task in (process / "task").iterdir():
                left += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue  # has ended
        total += sum(1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total


def median(values: Sequence[float]) -> float:
    """The middle of several runs."""
    return statistics.median(values)
