"""A root's line and a log writer for a gateway of whichever state of the project, in a process of that state's own: what records and
packets look like changes from one to the other.

``python -P line_and_log.py`` in a checkout, with its interpreter; see :class:`bench.measuring.states.Driven`, which writes a line for
each thing to do and reads an answer in JSON. The gateway does not know of the rows, nor need it: its log is files that Spark looks at.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from gateway.tests.peer import RootPeer

try:
    from skerry.storage.log.record import RECORD
    from skerry.storage.log.stream_log import StreamLog
except ImportError:
    # Before there was a package for what is stored.
    from skerry.streams.log import StreamLog  # type: ignore[import-not-found,no-redef]
    from skerry.streams.record import RECORD  # type: ignore[import-not-found,no-redef]

#: Values of ``light`` are uniform below this, in lx: as far as the sensor reaches.
SPAN = 40_000
MOTES = 54
#: Steps a second of a trickle.
STEPS = 50
#: The first epoch, later than any query's first one: users who come late ask from the time that it is.
BEGIN = 100_000


def lights(first: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Values of rows from ``first`` on that are appended at once: the same of each state."""
    return np.random.default_rng([1, first]).integers(0, SPAN, count)


class Writer:
    """Appends to a gateway's log."""

    def __init__(self, data: Path, stream: int) -> None:
        self._log, self._stream = StreamLog(data), stream

    def append(self, count: int) -> tuple[int, int, float, float]:
        """The first row's number, how many, and s of the monotonic clock before and since."""
        first = self._log.rows
        numbers = np.arange(first, first + count)
        rows = np.zeros(count, RECORD)
        rows["stream"], rows["node"], rows["epoch"] = (
            self._stream,
            numbers % MOTES + 1,
            BEGIN + numbers // MOTES,
        )
        rows["sample"] = rows["arrival"] = time.time_ns() // 1000
        rows["value"][:, 0] = lights(first, count)
        began = time.monotonic()
        self._log.append(rows)
        return first, count, began, time.monotonic()

    def trickle(self, rate: int, seconds: float) -> list[tuple[int, int, float, float]]:
        """So many rows a second, for so long."""
        began, done = time.monotonic(), []
        for step in range(1, int(seconds * STEPS) + 1):
            due = rate * step // STEPS - rate * (step - 1) // STEPS
            if due:
                done.append(self.append(due))
            time.sleep(max(0.0, began + step / STEPS - time.monotonic()))
        return done


def main() -> None:
    """Until there is nothing more to do."""
    root, writer = RootPeer(), None
    for line in sys.stdin:
        answer: object = None
        match line.split():
            case ["url"]:
                answer = root.url
            case ["open", stream, data]:
                writer = Writer(Path(data), int(stream))
            case ["append", count]:
                assert writer is not None
                answer = [writer.append(int(count))]
            case ["trickle", rate, seconds]:
                assert writer is not None
                answer = writer.trickle(int(rate), float(seconds))
            case words:
                raise ValueError(f"nobody knows {words}")
        print(json.dumps(answer), flush=True)
    root.close()


if __name__ == "__main__":
    main()
