"""What the history holds: how far the log has been compacted, and each file. Replaced as a whole, after the files."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from skerry.storage.log.partition import sync_directory
from skerry.storage.state import DataError

NAME = "manifest.json"
VERSION = 1
#: What is being written; no reader's ``*.parquet`` finds it.
UNFINISHED = ".new"


@dataclass(frozen=True, slots=True)
class DayFile:
    """A stream's rows of one day. ``first``, ``last``: row numbers; ``since``, ``until``: sample times, UTC in us."""

    rows: int
    bytes: int
    first: int
    last: int
    since: int
    until: int


@dataclass
class Manifest:
    """``rows``: those of the log before it are in the files. ``files`` by path below the history's directory,
    ``streams``: what the directories hold. ``gone``: the last day that was dropped for its age or for room. ``shifts``: what has been
    added to times, in us, by the first row of those that have it (:mod:`skerry.storage.log.dating`); ``moving``: files that still lie
    beside those whose places they take."""

    rows: int = 0
    files: dict[str, DayFile] = field(default_factory=dict)
    streams: dict[str, str] = field(default_factory=dict)
    gone: str | None = None
    shifts: dict[str, int] = field(default_factory=dict)
    moving: list[str] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files.values())

    def of(self, directory: str) -> dict[str, DayFile]:
        """The files of one directory, by day."""
        return {
            day_of(path): file
            for path, file in sorted(self.files.items())
            if path.startswith(f"{directory}/")
        }

    @classmethod
    def load(cls, directory: Path) -> Manifest:
        """The manifest of a history; an empty one where there is none. Raises DataError."""
        path = directory / NAME
        try:
            data = json.loads(path.read_text())
            if data["version"] != VERSION:
                raise DataError(f"{path}: version {data['version']}, and this skerry reads version {VERSION}")
            files = {name: DayFile(**file) for name, file in data["files"].items()}
            return cls(
                data["rows"], files, data["streams"], data["gone"], dict(data["shifts"]), list(data["moving"])
            )
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


def path_of(directory: str, day: str) -> str:
    """The file of a directory's day."""
    return f"{directory}/{day}.parquet"


def day_of(path: str) -> str:
    """The day of a file's path."""
    return path.rpartition("/")[2].removesuffix(".parquet")


class Replacement:
    """A file that takes another's place once it is complete and durable: readers see the old or the new one, whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unfinished = path.with_name(path.name + UNFINISHED)
        self._file: IO[bytes] | None = None

    def __enter__(self) -> IO[bytes]:
        self._file = self._unfinished.open("wb")
        return self._file

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._file is not None
        try:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
        finally:
            self._file.close()
            if kind is not None:
                self._unfinished.unlink(missing_ok=True)
        if kind is None:
            self._unfinished.replace(self._path)
            sync_directory(self._path.parent)
