"""Processes that run together, and end together whatever ends this one."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

#: Wait this long in s for a process to end by itself after SIGINT.
END_LIMIT_S = 20
#: How often they are looked at, in s.
_LOOK_S = 0.2


class Children:
    """The processes that are started in this block. However it is left, each of them is ended, the last one first.

    Ctrl-C, SIGTERM and SIGHUP (the terminal closes) only note that somebody has ``asked`` for the end, or interrupt what is
    :meth:`interruptible`: an exception at any other place could leave one behind. Asked again, nothing happens: the end is under way.
    """

    def __init__(self) -> None:
        self.asked = False
        #: Exit codes, the last one's first, once all have ended.
        self.codes: list[int] = []
        self._running: list[subprocess.Popen[bytes]] = []
        self._raises = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Children:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Whoever says nohup means it.
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.codes = [_end(child) for child in reversed(self._running)]
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def start(self, command: list[str], **how: Any) -> subprocess.Popen[bytes]:
        """Start one; ``how`` is for Popen. Raises OSError."""
        raises, self._raises = self._raises, False
        # In a session of its own: Ctrl-C on the terminal reaches this process only, which ends the children in order.
        child = subprocess.Popen(command, start_new_session=True, **how)
        self._running.append(child)
        self._raises = raises
        if raises and self.asked:
            self._interrupt()
        return child

    def wait(self) -> None:
        """Until one of them ends, or somebody asks."""
        while not self.asked and all(child.poll() is None for child in self._running):
            time.sleep(_LOOK_S)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Who asks for the end raises KeyboardInterrupt in this block, once."""
        try:
            self._raises = True
            if self.asked:
                self._interrupt()
            yield
        finally:
            self._raises = False

    def _ask(self, *_: object) -> None:
        self.asked = True
        if self._raises:
            self._interrupt()

    def _interrupt(self) -> None:
        self._raises = False
        raise KeyboardInterrupt


def _end(child: subprocess.Popen[bytes]) -> int:
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
    try:
        return child.wait(END_LIMIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()
