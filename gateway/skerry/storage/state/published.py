"""What other processes need of a gateway's state, in files that are replaced as a whole: ``published/`` in its data directory.

A gateway alone opens its database. Spark jobs, which may run on other machines that have the directory mounted for reading, find here
what the numbers in the log mean: ``streams.json``, all there have been; ``queries-N.json``, users' queries from id 100 N on, a hundred
each, so that one more query writes one small file. All of it is made of the database: a gateway that starts writes it anew.

Nothing here is synced to the disk, which would take each query's time: what a power cut has damaged, the next start mends. It is written
before the database. So rows of a stream are never in the log before it is here; a query may be here that its user was
then told could not be remembered, until the next change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from skerry.storage.replacement import UNFINISHED
from skerry.storage.state.errors import DataError, StorageError

DIRECTORY = "published"
STREAMS = "streams.json"
#: Queries of one file.
_TOGETHER = 100


class Publisher:
    """Writes them. Not locked: its owner calls it under his lock."""

    def __init__(self, data: Path) -> None:
        self._directory = data / DIRECTORY
        self._streams: dict[int, str] = {}
        self._queries: dict[int, dict[str, str]] = {}
        #: Files that are not yet as they are to be.
        self._due: set[str] = set()

    def publish(
        self, streams: Mapping[int, str], queries: Mapping[str, str | None], *, everything: bool = False
    ) -> None:
        """What has changed, each in JSON; None: gone. ``everything``: there is nothing else. StorageError: it is tried again with the next
        change."""
        try:
            self._directory.mkdir(exist_ok=True)
            if everything:
                self._begin_anew()
            self._take(streams, queries)
            # Queries name streams.
            for name in sorted(self._due, key=lambda name: name != STREAMS):
                self._write(name)
            self._due.clear()
        except OSError as error:
            # Somebody may have taken any of them away.
            self._due.update({STREAMS, *map(_file_of, self._queries)})
            raise StorageError(f"{error.filename or self._directory}: {error.strerror}") from None

    def _begin_anew(self) -> None:
        self._streams, self._queries = {}, {}
        self._due = {STREAMS, *(file.name for file in self._directory.glob("queries-*.json"))}

    def _take(self, streams: Mapping[int, str], queries: Mapping[str, str | None]) -> None:
        if streams:
            self._streams.update(streams)
            self._due.add(STREAMS)
        for query, text in queries.items():
            together = self._queries.setdefault(int(query) // _TOGETHER, {})
            if text is None:
                together.pop(query, None)
            else:
                together[query] = text
            self._due.add(_name_of(query))

    def _write(self, name: str) -> None:
        number = None if name == STREAMS else int(name.removeprefix("queries-").removesuffix(".json"))
        entries = self._streams if number is None else self._queries.get(number, {})
        if number is not None and not entries:
            self._queries.pop(number, None)
            (self._directory / name).unlink(missing_ok=True)
            return
        inner = ",\n".join(f"{json.dumps(str(key))}: {text}" for key, text in entries.items())
        file, unfinished = self._directory / name, self._directory / f"{name}{UNFINISHED}"
        try:
            unfinished.write_text(f"{{{inner}}}\n", "utf-8")
            unfinished.replace(file)
        except OSError:
            with suppress(OSError):
                unfinished.unlink()
            raise


def streams(data: Path) -> list[dict[str, Any]]:
    """The streams of a data directory, whose gateway may run, in the order of their numbers; [] where none were published."""
    return sorted(_read(data / DIRECTORY / STREAMS).values(), key=lambda entry: int(entry["number"]))


def streams_version(data: Path) -> tuple[int, int, int] | None:
    """Differs from what it was before, once streams have changed; None: there are none. Raises DataError."""
    file = data / DIRECTORY / STREAMS
    try:
        known = file.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{file}: {error.strerror}") from None
    return known.st_ino, known.st_mtime_ns, known.st_size


def query(data: Path, query_id: str) -> dict[str, Any] | None:
    """A user's query; None: there is none. Raises DataError."""
    found: dict[str, Any] | None = (
        _read(data / DIRECTORY / _name_of(query_id)).get(query_id) if query_id.isdecimal() else None
    )
    return found


def queries(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """All users' queries with their ids, oldest first. Raises DataError."""
    directory = data / DIRECTORY
    try:
        names = [name for name in os.listdir(directory) if name.startswith("queries-") and name.endswith(".json")]  # fmt: skip
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"{directory}: {error.strerror}") from None
    for name in sorted(names, key=lambda name: (len(name), name)):
        yield from sorted(_read(directory / name).items(), key=lambda item: int(item[0]))


def damaged(file: Path, why: object) -> DataError:
    """What to do with a file that is not as it was written."""
    return DataError(
        f"{file} is not as the gateway wrote it ({' '.join(str(why).split())}): start the gateway, which writes it anew, or put it back "
        "from a copy"
    )


def _name_of(query_id: str) -> str:
    return _file_of(int(query_id) // _TOGETHER)


def _file_of(number: int) -> str:
    return f"queries-{number}.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DataError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise damaged(file, error) from None
    if not isinstance(found, dict):
        raise damaged(file, "it is no object")
    return found
