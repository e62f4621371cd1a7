"""Types of streams as somebody else may write them: each does in one way what it should not, or what it just may."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar

from skerry.sources.stream_type import Read, Sensor, Signal, StreamType, Timed


class Faulty(StreamType):
    """``faulty://localhost/WHAT``."""

    every_s: float | None = 0.05

    def init(self, sensor: Sensor) -> None:
        self._what, self._calls = sensor.url.path.removeprefix("/"), 0
        if self._what == "init":
            raise ConnectionError("no dice")
        self._open = True

    def read(self) -> Read:
        self._calls += 1
        return self._does[self._what](self) if self._calls == 1 else Signal.NO_VALUE

    def _hangs(self) -> Read:
        threading.Event().wait()
        raise AssertionError

    def kept(self, values: int) -> None:
        if self._what == "kept":
            raise KeyError(values)

    def close(self) -> None:
        if not self._open:
            raise AssertionError

    _does: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "nothing": lambda _: None,
        "text": lambda _: "0.5",
        "over": lambda _: next(iter(())),
        "exit": lambda _: sys.exit("enough"),
        "half": lambda _: [{"rain": 1, "place": "\ud800"}, {"rain": 2, "place": "whole"}],
        "kept": lambda _: {"rain": 3},
        "proxy": lambda _: MappingProxyType({"rain": 4}),
        "naive": lambda _: Timed({"rain": 5}, datetime(2002, 11, 6, 12)),
        "hangs": _hangs,
    }


class Waiting(StreamType):
    """One that waits for what is cancelled."""

    async def init(self, sensor: Sensor) -> None: ...

    async def read(self) -> Read:
        waited_for = asyncio.get_running_loop().create_future()
        waited_for.cancel()
        return await waited_for

    async def close(self) -> None: ...
