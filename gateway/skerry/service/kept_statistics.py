"""What is known of sources over restarts: a file in the data directory, written now and then."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

from skerry.sources.statistics import SourceStatistics
from skerry.storage.replacement import Replacement

_log = logging.getLogger(__name__)

FILE = "source_statistics.json"
#: Written so often, in s, where rows have come: a crash loses no more of it.
EVERY_S = 10.0


class KeptStatistics:
    """For one thread. ``data``: the data directory."""

    def __init__(self, data: Path, statistics: SourceStatistics) -> None:
        self._path, self._statistics = data / FILE, statistics
        try:
            statistics.restore(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("%s is damaged (%s): sources are learnt anew", self._path, error)
        self._written, self._at = statistics.noted, time.monotonic()

    def look(self) -> None:
        """Write them, if it is time."""
        if time.monotonic() - self._at >= EVERY_S:
            self.write()

    def write(self) -> None:
        """Write them, if rows have come since."""
        noted, self._at = self._statistics.noted, time.monotonic()
        if noted == self._written:
            return
        try:
            with Replacement(self._path) as file:
                file.write(json.dumps(self._statistics.kept()).encode())
        except OSError as error:
            _log.warning("%s cannot be written: %s", self._path, error)
            return
        self._written = noted
