"""What the history holds: how far the log has been compacted, and each file. Replaced as a whole, after the files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skerry.storage.history.samples_apart import Sessions
from skerry.storage.replacement import Replacement
from skerry.storage.state import DataError

NAME = "manifest.json"
VERSION = 2


@dataclass(frozen=True, slots=True)
class DayFile:
    """A stream's rows of one day, or a part of them where they are many. ``first``, ``last``: row numbers; ``since``, ``until``: sample
    times, UTC in us; ``apart``, ``sessions``: see :mod:`skerry.storage.history.samples_apart`."""

    rows: int
    bytes: int
    first: int
    last: int
    since: int
    until: int
    apart: int = 0
    sessions: Sessions = ()


@dataclass
class Manifest:
    """``rows``: those of the log before it are in the files. ``files`` by path below the history's directory,
    ``streams``: what the directories hold. ``gone``: the last day that was dropped for its age or for room. ``shifts``: what has been
    added to times, in us, by the first row of those that have it (:mod:`skerry.storage.log.dating`); ``moving``: files that still lie
    beside those whose places they take. ``dropped``: by directory, the row number up to which some of its rows have gone with their
    files."""

    rows: int = 0
    files: dict[str, DayFile] = field(default_factory=dict)
    streams: dict[str, str] = field(default_factory=dict)
    gone: str | None = None
    shifts: dict[str, int] = field(default_factory=dict)
    moving: list[str] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files.values())

    def of(self, directory: str) -> dict[str, DayFile]:
        """The files of one directory, oldest day first."""
        there = [path for path in self.files if directory_of(path) == directory]
        return {path: self.files[path] for path in sorted(there, key=_place)}

    def last_part(self, directory: str, day: str) -> int | None:
        """The last file of a directory's day; None: there is none."""
        parts = (_place(path) for path in self.files if directory_of(path) == directory)
        return max((part for of, part in parts if of == day), default=None)

    def without(self, names: Collection[str]) -> Manifest:
        """Of the same history when these files have gone."""
        dropped = dict(self.dropped)
        for name in names:
            directory = directory_of(name)
            dropped[directory] = max(dropped.get(directory, 0), self.files[name].last + 1)
        files = {name: file for name, file in self.files.items() if name not in names}
        return dataclasses.replace(self, files=files, dropped=dropped)

    @classmethod
    def load(cls, directory: Path) -> Manifest:
        """The manifest of a history; an empty one where there is none. Raises DataError."""
        path = directory / NAME
        try:
            data = json.loads(path.read_text())
            if data["version"] != VERSION:
                raise DataError(f"{path}: version {data['version']}, and this skerry reads version {VERSION}")
            files = {name: _day_file(file) for name, file in data["files"].items()}
            shifts, moving, dropped = dict(data["shifts"]), list(data["moving"]), dict(data["dropped"])
            return cls(data["rows"], files, data["streams"], data["gone"], shifts, moving, dropped)
        except FileNotFoundError:
            return cls()
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}") from None
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise DataError(
                f"{path} is not as the gateway wrote it ({type(error).__name__}: {error}): put it back from a copy"
            ) from None

    def save(self, directory: Path) -> None:
        """Replace it; durable when this returns."""
        data = {"version": VERSION, **dataclasses.asdict(self)}
        with Replacement(directory / NAME) as file:
            file.write(json.dumps(data, indent=1).encode())


def _day_file(described: dict[str, Any]) -> DayFile:
    sessions = tuple((session, least, most) for session, least, most in described["sessions"])
    return DayFile(**{**described, "sessions": sessions})


def path_of(directory: str, day: str, part: int = 1) -> str:
    """The file of a directory's day; of a day that has many rows the first file, the second …"""
    return f"{directory}/{day}.parquet" if part == 1 else f"{directory}/{day}.{part}.parquet"


def day_of(path: str) -> str:
    """The day of a file's path."""
    return _place(path)[0]


def part_of(path: str) -> int:
    """Which of its day's files a path is of."""
    return _place(path)[1]


def _place(path: str) -> tuple[str, int]:
    day, _, part = path.rpartition("/")[2].removesuffix(".parquet").partition(".")
    return day, int(part or 1)


def directory_of(path: str) -> str:
    """The directory of a file's path."""
    return path.rpartition("/")[0]
