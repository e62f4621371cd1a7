"""What is wrong with the gateway now and needs somebody: shown by ``skerry status``, logged when it begins and ends."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

log = logging.getLogger(__name__)


class Alarms:
    """By name; each says since when (UTC in s) and what. From any thread."""

    def __init__(self) -> None:
        self._active: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def on(self, name: str, text: str) -> None:
        """Something is wrong, or still wrong in another way."""
        with self._lock:
            since, before = self._active.get(name, (time.time(), ""))
            self._active[name] = (since, text)
        if before != text:
            log.error("alarm: %s", text)

    def off(self, name: str) -> None:
        """It is well again; nothing when it was."""
        with self._lock:
            ended = self._active.pop(name, None)
        if ended is not None:
            log.error("alarm over after %.0f s: %s", time.time() - ended[0], ended[1])

    def active(self) -> list[dict[str, Any]]:
        """``name``, ``since`` and ``text`` of each, oldest first."""
        with self._lock:
            return [
                {"name": name, "since": since, "text": text}
                for name, (since, text) in sorted(self._active.items(), key=lambda entry: entry[1][0])
            ]
