"""Processes that a run has started, and that have to end with it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: prctl(2): processes whose parents have ended become this one's.
_SUBREAPER = 36
#: s from SIGTERM to SIGKILL.
PATIENCE_S = 30


def children(process: int) -> list[int]:
    """What a process has started and has not ended; none of one that has ended."""
    lists = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{process}/task").iterdir():
            # Threads come and go meanwhile.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                lists.append((task / "children").read_text())
    return [int(child) for text in lists for child in text.split()]


@contextmanager
def ended_with_it() -> Iterator[None]:
    """Where the body fails or is interrupted, nothing that was started in it goes on: neither what nobody knew of yet, nor what was
    started by others that have ended since, such as the Java of a gateway. PySpark's, interrupted while it starts, would never end."""
    before, own = set(children(os.getpid())), ctypes.CDLL(None)
    own.prctl(_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    except BaseException:
        while left := set(children(os.getpid())) - before:
            for child in left:
                _end(child)
        raise
    finally:
        own.prctl(_SUBREAPER, 0, 0, 0, 0)


def _end(child: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGTERM)
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.05)
