"""The gateway's record of how tables change: looks at those that queries are joined with, and notes from which row of the log on each
reading holds (:mod:`skerry.tables.versions`)."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from typing import Protocol

from skerry.storage.replacement import Replacement, sync_directory
from skerry.tables import table_file
from skerry.tables.columns import TableError
from skerry.tables.store import LOOK_S, Table
from skerry.tables.versions import DIRECTORY, NOTES, SUFFIX, Note, TableVersions

log = logging.getLogger(__name__)

#: Readings that have been replaced take so many bytes at most; beyond that rows meet the next one.
REPLACED_BYTES = 1 << 30


class Tables(Protocol):
    """What is looked at."""

    def get(self, name: str) -> Table:
        """A table as it is now; readings have ascending versions. Raises TableError when it is not there."""
        ...


class TableJournal(TableVersions):
    """``rows``: the number of the log's next row, which does not come while ``lock`` is held."""

    def __init__(
        self, data: Path, store: Tables, rows: Callable[[], int], lock: AbstractContextManager[object]
    ) -> None:
        super().__init__(data / DIRECTORY)
        self._store, self._rows, self._appending = store, rows, lock
        self.directory.mkdir(parents=True, exist_ok=True)
        there = [int(path.stem) for path in self.directory.glob(f"*{SUFFIX}")]
        noted = [note.version or 0 for notes in self._notes.values() for note in notes]
        self._numbers = count(max([0, *there, *noted]) + 1)
        #: By name, the version that the store had when it was looked at last; None: it had none.
        self._seen: dict[str, int | None] = {}
        self._wanted: Counter[str] = Counter()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tables", daemon=True)

    def start(self) -> None:
        """Look at what is wanted from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            try:
                self.look()
            except Exception:
                # A fault of the gateway's, of which rows go on to meet what was noted last.
                log.exception("tables could not be looked at")

    def want(self, names: Collection[str]) -> None:
        """A query is joined with these, of which there is a note when this returns, as far as it could be written."""
        self._wanted.update(names)
        self._look_at(names)

    def leave(self, names: Collection[str]) -> None:
        """One less is."""
        self._wanted.subtract(names)

    def look(self) -> None:
        """See what has changed. What cannot be written is tried again when this is called again."""
        self._look_at([name for name, queries in list(self._wanted.items()) if queries > 0])

    def _look_at(self, names: Collection[str]) -> None:
        for name in names:
            try:
                self._look_at_one(name)
            except OSError as error:
                log.warning("table %s: it could not be kept: %s; rows meet it as it was", name, error)

    def _look_at_one(self, name: str) -> None:
        # Reading and writing take their time: the log waits for neither.
        try:
            table: Table | None = self._store.get(name)
        except TableError:
            table = None
        seen = None if table is None else table.version
        if name in self._seen and self._seen[name] == seen:
            return
        version = None
        if table is not None:
            version = self._same(name, table) or self._write(table)
        with self._appending:
            # Who has looked at the same time may have seen more.
            if seen is None or (self._seen.get(name) or 0) < seen:
                self._note(name, version)
                self._seen[name] = seen

    def _last(self, name: str) -> Note | None:
        notes = self._notes.get(name)
        return notes[-1] if notes else None

    def _same(self, name: str, table: Table) -> int | None:
        """The version that was noted last, if it says the same."""
        last = self._last(name)
        known = None if last is None or last.version is None else self._table(last.version)
        return known.version if known is not None and table_file.same(known, table) else None

    def _write(self, table: Table) -> int:
        version = next(self._numbers)
        with Replacement(self.path(version)) as file:
            table_file.write(table, file)
        return version

    def _note(self, name: str, version: int | None) -> None:
        last = self._last(name)
        if version == (None if last is None else last.version):
            return
        path = self.directory / NOTES
        new = not path.exists()
        with path.open("ab") as file:
            file.write(_line(name, Note(self._rows(), version)))
            file.flush()
            os.fsync(file.fileno())
        if new:
            sync_directory(self.directory)
        self.refresh()

    def drop_before(self, row: int) -> None:
        """Forget what only rows before this one have met. Called under the lock of the log."""
        self.refresh()
        kept = {name: _since(notes, row) for name, notes in self._notes.items()}
        needed = {note.version for notes in kept.values() for note in notes}
        if sum(map(len, kept.values())) < sum(map(len, self._notes.values())):
            with Replacement(self.directory / NOTES) as file:
                file.writelines(_line(name, note) for name, notes in kept.items() for note in notes)
            self.refresh()
        current = {notes[-1].version for notes in kept.values() if notes}
        replaced = 0
        # The newest are kept first.
        for path in sorted(self.directory.glob(f"*{SUFFIX}"), key=lambda path: -int(path.stem)):
            version = int(path.stem)
            if version in current:
                continue
            replaced += path.stat().st_size
            if version not in needed or replaced > REPLACED_BYTES:
                path.unlink(missing_ok=True)


def _line(name: str, note: Note) -> bytes:
    return json.dumps([name, *note]).encode() + b"\n"


def _since(notes: list[Note], row: int) -> list[Note]:
    """Without those that hold for rows before this one only."""
    return [note for i, note in enumerate(notes) if i == len(notes) - 1 or notes[i + 1].row > row]
