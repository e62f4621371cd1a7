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


#: What a gateway's processes are: itself, its driver and others of its own; Java; Python that Spark starts, of executors and to plan
#: batches; and who compacts the log.
PYTHON, JAVA, WORKERS, COMPACTION = "gateway and driver", "Java", "Spark's Python", "compaction"


def processor_shares(root: int) -> dict[str, float]:
    """Processor time of a gateway and all that it started, in s, by what they are; of those that have ended nothing."""
    return _shares(root, processor_seconds)


def memory_shares(root: int) -> dict[str, float]:
    """Bytes that they hold, pages they share counted once."""
    return _shares(root, _proportional)


def _shares(root: int, part: Callable[[int], float]) -> dict[str, float]:
    taken, left = {PYTHON: 0.0, JAVA: 0.0, WORKERS: 0.0, COMPACTION: 0.0}, [(root, b"")]
    while left:
        number, parent = left.pop()
        try:
            command = (Path("/proc") / str(number) / "cmdline").read_bytes()
            found = part(number)
        except (FileNotFoundError, ProcessLookupError):
            continue  # has ended
        java = command.partition(b"\0")[0].endswith(b"java")
        if java and command == parent:
            continue  # Java as it is about to run something else, in memory that is still its parent's
        left += [(child, command) for child in children(number)]
        worker = b"-m\0pyspark." in command or b"prompt_daemon" in command
        compacts = b"skerry.storage.history.compaction_process" in command
        taken[JAVA if java else WORKERS if worker else COMPACTION if compacts else PYTHON] += found
    return taken


def proportional_memory(root: int | None = None) -> int:
    """Bytes that a process (None: this one) and all that it started hold, pages they share counted once."""
    return int(sum(memory_shares(os.getpid() if root is None else root).values()))


def _proportional(number: int) -> int:
    text = (Path("/proc") / str(number) / "smaps_rollup").read_text()
    return sum(1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
