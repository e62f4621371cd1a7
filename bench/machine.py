"""The machine a benchmark ran on, and the table it prints."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence


def table(title: str, rows: Sequence[tuple[str, str, str]]) -> None:
    """Print one Markdown table: what, measured, goal."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    print(f"\n### {title}\n")
    print(f"{os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}\n")
    print("| what | measured | goal |\n| --- | --- | --- |")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def median(values: Sequence[float]) -> float:
    """The middle of several runs."""
    return statistics.median(values)
