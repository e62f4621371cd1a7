"""Data directories as a gateway leaves them, for those who read them beside it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skerry.storage.history.retention import Retention
from skerry.storage.history.store import History
from skerry.storage.log.record import Records
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.state import DataDirectory
from skerry.streams.stream import Stream, roots_of


class Written:
    """What a gateway of some roots has written, and goes on writing."""

    def __init__(self, data: Path, streams: Sequence[Stream], segment_rows: int = 1000) -> None:
        self.data, self.streams = data, list(streams)
        self._directory = DataDirectory(data)
        self.remember()
        self.log = StreamLog(data, segment_rows, self._root_of)
        self.history = History(data)

    def remember(self, queries: dict[str, dict[str, Any]] | None = None) -> None:
        """Save the streams, and users' queries by id."""
        entries = {
            "stream": {str(stream.number): json.dumps(stream.to_dict()) for stream in self.streams},
            "queries": {name: json.dumps(entry) for name, entry in (queries or {}).items()},
        }
        self._directory.save("gateway", {}, None, lambda: entries)

    def _root_of(self, number: int) -> int:
        return next(int(roots_of(stream.session)) for stream in self.streams if stream.number == number)

    def append(self, records: Records) -> int:
        """Rows come."""
        return self.log.append(records)

    def compact(self, end: int | None = None) -> None:
        """Bring rows into the files."""
        self.history.compact(self.log.path, self.log.rows if end is None else end, self.streams)

    def keep(self, now: float | None = None, **kept: Any) -> None:
        """Leave away what is too old then, UTC in s, or too much: see :class:`Retention`."""
        self.history.retention = dataclasses.replace(Retention(), **kept)
        self.history.retain(self.log, self.history.manifest.rows, now)

    def close(self) -> None:
        """Release it."""
        self.log.close()
        self._directory.close()
