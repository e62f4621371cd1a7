"""How groups of joins were when the gateway last heard of them: a file beside the joins, so that a restart can tell before rows come."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from skerry.execution.join_buckets import GroupNow
from skerry.storage.replacement import Replacement

_log = logging.getLogger(__name__)

FILE = "groups.json"
#: Written so often at most, in s: a crash loses no more of it.
EVERY_S = 1.0


class KeptGroups:
    """For one thread at a time. ``directory``: the joins'."""

    def __init__(self, directory: Path) -> None:
        self._path, self._at = directory / FILE, -EVERY_S

    def read(self) -> dict[str, GroupNow]:
        """By name, all that were written."""
        try:
            return {name: GroupNow(**now) for name, now in json.loads(self._path.read_bytes()).items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            _log.warning(
                "%s is damaged (%s): joins tell what they keep with their next rows", self._path, error
            )
            return {}

    def write(self, groups: Mapping[str, GroupNow], *, now: bool = False) -> None:
        """Write them, if it is time, or ``now``."""
        if not now and time.monotonic() - self._at < EVERY_S:
            return
        self._at = time.monotonic()
        try:
            with Replacement(self._path) as file:
                file.write(json.dumps({name: asdict(one) for name, one in groups.items()}).encode())
        except OSError as error:
            _log.warning("%s cannot be written: %s", self._path, error)
