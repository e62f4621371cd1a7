"""What a gateway remembers between runs, as JSON, replaced as a whole or, where that is much, added to; and whether there is room on its
disk."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

#: Bytes of the disk that rows leave free at least, so that what users ask can still be remembered.
RESERVE = 4 << 20
#: An object of more bytes is not replaced with each change.
_LARGE = 1 << 18
#: Entry of an object: how often it was saved; and what stands before the names of those of which only changes are there.
_NUMBER, _CHANGED = "saved", "changed "
#: By name, objects whose values are JSON already; None: gone.
Entries = Mapping[str, Mapping[str, str | None]]


class DataError(RuntimeError):
    """The data directory cannot be used; one line."""


class StorageError(RuntimeError):
    """The data directory cannot be written now: the disk is full or broken; one line. Not an OSError, which a line may raise."""


class DataDirectory:
    """One daemon's directory: made if missing, locked against a second daemon."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: Bytes of the object and of what was added to it; and how often it was saved.
        self._saved = self._added = self._number = 0
        #: The object's parts as they were written last, in JSON; those of a run before are not known.
        self._parts: dict[str, str] = {}
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = (path / "lock").open("w")
        except OSError as error:
            raise DataError(f"data directory {path}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(f"data directory {path}: another gateway uses it") from None

    def load(self, name: str) -> dict[str, Any] | None:
        """The JSON object last saved under a name, with what was added to it since."""
        data, self._number = _read(self.path, name)
        return data

    def damaged(self, name: str, why: str) -> DataError:
        """What to do with an object that is not as it was saved."""
        return _damaged(self.path, name, why)

    def save(
        self,
        name: str,
        data: dict[str, Any],
        changed: Entries | None = None,
        everything: Callable[[], Entries] = dict,
    ) -> None:
        """Remember an object; durable when this returns. StorageError: it is as it was.

        ``everything``: further entries, objects whose values are JSON already. Of a large one only what has ``changed`` in these is
        written, and such parts of ``data``, behind what was written last, None for what is gone; ``changed`` None: it is not known.
        """
        number = {_NUMBER: str(self._number + 1)}
        parts = {key: json.dumps(value) for key, value in data.items()}
        if changed is not None and self._saved > _LARGE and self._added < self._saved:
            other = {key: text for key, text in parts.items() if self._parts.get(key) != text}
            marked = {_CHANGED + key: values for key, values in changed.items() if values}
            self._add(name, _written(number | other, marked))
        else:
            self._replace(name, _written(number | parts, everything()))
        self._number += 1
        self._parts = parts

    def _add(self, name: str, text: str) -> None:
        file, line = _journal(self.path, name), text.encode() + b"\n"
        try:
            with file.open("ab") as out:
                out.truncate(self._added)
                out.write(line)
                out.flush()
                os.fsync(out.fileno())
            if not self._added:
                self._sync()
        except OSError as error:
            # A part of the line is cut off by the next one, or left out when it is read.
            raise StorageError(f"{file}: {error.strerror}") from None
        self._added += len(line)

    def _replace(self, name: str, whole: str) -> None:
        file = self.path / f"{name}.json"
        partial = file.with_suffix(".new")
        text = whole.encode()
        try:
            with partial.open("wb") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            partial.replace(file)
            self._sync()
        except OSError as error:
            with suppress(OSError):
                partial.unlink()
            raise StorageError(f"{file}: {error.strerror}") from None
        self._saved, self._added = len(text), 0
        # Its lines are older than the file, and would not be read again.
        with suppress(OSError):
            _journal(self.path, name).unlink(missing_ok=True)

    def _sync(self) -> None:
        """The directory itself: that the new file is the one of this name."""
        directory = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def check_room(self) -> None:
        """Raises StorageError when rows would take what the state needs: twice its size, at least :data:`RESERVE`."""
        disk = os.statvfs(self.path)
        free, least = disk.f_bavail * disk.f_frsize, max(RESERVE, 2 * (self._saved + self._added))
        if free < least:
            raise StorageError(
                f"{self.path}: {free / 1e6:.1f} MB free on its disk, of which {least / 1e6:.1f} MB are kept for the gateway's state"
            )

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()


def remembered(path: Path, name: str) -> dict[str, Any] | None:
    """What the gateway of a data directory, which may be running, saved last under a name: for other processes, which leave everything as
    it is. Raises DataError."""
    while True:
        before = version(path, name)
        try:
            data, _ = _read(path, name)
        except DataError:
            if version(path, name) == before:
                raise
            continue
        # Else what was added may be to another object than was read.
        if version(path, name)[0] == before[0]:
            return data


def version(path: Path, name: str) -> tuple[tuple[int, int, int] | None, ...]:
    """Differs from what it was before, once an object was saved: of the file that is replaced, and of what was added to it."""
    found: list[tuple[int, int, int] | None] = []
    for file in (path / f"{name}.json", _journal(path, name)):
        try:
            known = file.stat()
            found.append((known.st_ino, known.st_mtime_ns, known.st_size))
        except FileNotFoundError:
            found.append(None)
        except OSError as error:
            raise DataError(f"{file}: {error.strerror}") from None
    return tuple(found)


def _read(path: Path, name: str) -> tuple[dict[str, Any] | None, int]:
    """An object with what was added to it, and how often it was saved. Raises DataError."""
    file = path / f"{name}.json"
    try:
        data: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return None, 0
    except OSError as error:
        raise DataError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise _damaged(path, name, str(error)) from None
    try:
        saved: int = data.pop(_NUMBER, 0)
        for change in _changes(_journal(path, name)):
            number = change.pop(_NUMBER)
            if number > saved:
                saved = number
                _apply(data, change)
    except OSError as error:
        raise DataError(f"{_journal(path, name)}: {error.strerror}") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise _damaged(path, name, f"{type(error).__name__}: {error}") from None
    return data, saved


def _journal(path: Path, name: str) -> Path:
    return path / f"{name}.changes"


def _changes(journal: Path) -> Iterator[dict[str, Any]]:
    """What was added since the object was replaced; a line that a crash tore is nothing."""
    try:
        lines = journal.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for line in lines[:-1]:
        yield json.loads(line)


def _damaged(path: Path, name: str, why: str) -> DataError:
    file, journal = path / f"{name}.json", _journal(path, name)
    # Rows of the log are understood by it: without it they would be taken for those of other queries.
    files = f"{file}, with {journal.name}," if journal.exists() else str(file)
    return DataError(
        f"{files} is not as the gateway wrote it ({' '.join(why.split())}): put it back from a copy, or take another data directory"
    )


def _apply(data: dict[str, Any], change: dict[str, Any]) -> None:
    """Bring an object up to date."""
    for key, value in change.items():
        if key.startswith(_CHANGED):
            entries = data.setdefault(key.removeprefix(_CHANGED), {})
            entries.update(value)
            for gone in [name for name, entry in value.items() if entry is None]:
                entries.pop(gone)
        else:
            data[key] = value


def _written(parts: Mapping[str, str], entries: Entries) -> str:
    """An object in JSON, of parts and entries whose values are JSON already."""
    found = [f"{json.dumps(key)}: {value}" for key, value in parts.items()]
    for key, values in entries.items():
        inner = ", ".join(f"{json.dumps(name)}: {value or 'null'}" for name, value in values.items())
        found.append(f"{json.dumps(key)}: {{{inner}}}")
    return f"{{{', '.join(found)}}}"
