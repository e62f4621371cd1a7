"""A data directory as a process that is not its gateway finds it: what the history and the log hold, and what their numbers mean.

Everything is opened for reading only. The gateway may run meanwhile: it replaces files as a whole, and rows are in a file before they
leave the log.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from skerry.storage.history import layout
from skerry.storage.history.damaged_files import naming
from skerry.storage.history.manifest import DayFile, Manifest
from skerry.storage.log import stream_log
from skerry.storage.state import DataError, published
from skerry.streams.intervals import is_plain
from skerry.streams.stream import Stream

HISTORY = "history"
#: So often, and so long, in s, it is waited for files that are being dated again.
_ATTEMPTS, _WAIT_S = 50, 0.1
_PLAIN = (layout.SENSORS, layout.BESIDE)


@dataclass(frozen=True)
class Selection:
    """Rows that are read: of these directories, and unless ``number`` is None of this stream alone."""

    directories: tuple[str, ...]
    number: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """What there is at one time. ``streams``: all there have been, by number."""

    data: Path
    manifest: Manifest
    streams: dict[int, Stream]

    @classmethod
    def of(cls, data: Path) -> Snapshot:
        """Raises DataError, which names what is not as it should be."""
        check(data)
        # Rows that the manifest counts are of streams that were published before.
        manifest = settled_manifest(data)
        return cls(data, manifest, _streams(data, published.streams_version(data)))

    @property
    def log(self) -> Path:
        """The log's directory."""
        return self.data / stream_log.DIRECTORY

    @cached_property
    def end(self) -> int:
        """The number behind the last row."""
        return max(self.manifest.rows, stream_log.length(self.log))

    @cached_property
    def all(self) -> list[Stream]:
        """All streams, in the order in which they began."""
        return list(self.streams.values())

    def directory_of(self, stream: Stream) -> str:
        """Where rows of a stream that is no plain one are."""
        return layout.directory_of(stream, self.all)

    def select(self, text: str) -> Selection:
        """What somebody means by a stream: a directory's name, or a stream's number. Raises DataError, which says what there is."""
        if text.isdecimal() and (stream := self.streams.get(int(text))) is not None:
            directories = _PLAIN if is_plain(stream.mote_query) else (self.directory_of(stream),)
            return Selection(directories, stream.number)
        if text not in self._described:
            raise DataError(f"data directory {self.data} has no stream {text}: it has {self._there()}")
        return Selection((text,))

    @cached_property
    def _described(self) -> dict[str, str]:
        """All directories that there are or will be, and what they hold."""
        found = dict(layout.MEANINGS) | self.manifest.streams
        for stream in self.all:
            if not is_plain(stream.mote_query) and f"stream-{stream.number}" not in found:
                found.setdefault(self.directory_of(stream), layout.describe(stream.mote_query))
        return found

    def _there(self) -> str:
        named = "; ".join(f"{name} ({what})" for name, what in self._described.items())
        numbers = ", ".join(str(number) for number in sorted(self.streams))
        return f"{named}; and by their numbers {numbers}" if numbers else named

    def numbers(self, selection: Selection) -> set[int]:
        """The streams whose rows in the log may be of these."""
        if selection.number is not None:
            return {selection.number}
        [directory] = selection.directories
        if directory in _PLAIN:
            return {stream.number for stream in self.all if is_plain(stream.mote_query)}
        first = self.streams.get(int(directory.removeprefix("stream-")))
        return {s.number for s in self.all if first is not None and s.mote_query == first.mote_query}

    def files(self, selection: Selection) -> dict[str, DayFile]:
        """Files with such rows, by path below the history's directory, oldest day first."""
        return {
            path: file
            for directory in selection.directories
            for path, file in self.manifest.of(directory).items()
        }

    def dropped(self, selection: Selection) -> int:
        """The row number up to which some of these rows are no longer there."""
        return max(self.manifest.dropped.get(directory, 0) for directory in selection.directories)

    def schema(self, selection: Selection) -> pa.Schema:
        """Columns of these rows, as their files have them."""
        [directory, *_] = selection.directories
        if directory in _PLAIN:
            return layout.sensors_schema()
        numbers = self.numbers(selection)
        if numbers:
            return layout.stream_schema(self.streams[min(numbers)])
        # Streams that nobody remembers: their files know.
        newest = next(reversed(self.files(selection)), None)
        if newest is None:
            raise DataError(f"data directory {self.data}: no rows of stream {directory} are left")
        file = self.data / HISTORY / newest
        with naming(file):
            return pq.read_schema(file).remove_metadata()


@lru_cache(maxsize=4)
def _streams(data: Path, version: object) -> dict[int, Stream]:
    """The streams that the gateway has published; read anew only when they have changed."""
    del version
    try:
        streams = [Stream.from_dict(entry) for entry in published.streams(data)]
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        file = data / published.DIRECTORY / published.STREAMS
        raise published.damaged(file, f"{type(error).__name__}: {error}") from None
    return {stream.number: stream for stream in streams}


def check(data: Path) -> None:
    """Raises DataError where this is no data directory."""
    if not data.is_dir():
        why = "it is a file" if data.exists() else "there is no such directory"
        raise DataError(f"data directory {data}: {why}; it is what 'skerry gateway --data' names")
    if not (data / stream_log.DIRECTORY).is_dir():
        there = ", ".join(sorted(file.name for file in data.iterdir())[:8]) or "nothing"
        raise DataError(f"data directory {data}: no gateway has written it: it has no log, but {there}")


def settled_manifest(data: Path) -> Manifest:
    """The manifest, when all files are where it says. Raises DataError."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_WAIT_S)
        manifest = Manifest.load(data / HISTORY)
        if not manifest.moving:
            return manifest
    raise DataError(
        f"{data / HISTORY}: files are being dated again, which {_ATTEMPTS * _WAIT_S:.0f} s have not ended: start the gateway, which ends it"
    )
