"""Tables of sensors without a stream as tables that streams are joined with: their tuples as they are now."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

import numpy as np

from skerry.planner.model import source_plans as plans
from skerry.planner.model.joined_tables import ColumnKind, TableColumn
from skerry.planner.model.table_lookups import OF_SENSORS
from skerry.sensors.store import Tuples
from skerry.tables.columns import Column, TableError
from skerry.tables.store import Table, TableStore

_KINDS = {plans.TEXT: ColumnKind.TEXT, plans.TIMESTAMP: ColumnKind.TIME}


class AllTables:
    """The tables of files, and those of sensors beside them, by the names under which readings are noted. ``tuples``: of a table of
    sensors by its key, under ``lock``; what it gives is not changed afterwards. May be called from any thread."""

    def __init__(
        self,
        files: TableStore,
        tuples: Callable[[str], Tuples | None],
        lock: AbstractContextManager[object],
    ) -> None:
        self._files, self._tuples, self._changing = files, tuples, lock
        self._versions = count(1)
        self._read: dict[str, tuple[Tuples, Table]] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Table:
        """A table as it is now. Raises TableError when it is not there, with what is the matter."""
        if not name.startswith(OF_SENSORS):
            return self._files.get(name)
        key = name.removeprefix(OF_SENSORS)
        with self._changing:
            tuples = self._tuples(key)
        with self._lock:
            if tuples is None:
                self._read.pop(name, None)
                raise TableError(f"table {key} has been dropped")
            known = self._read.get(name)
            if known is None or known[0] is not tuples:
                known = self._read[name] = tuples, _table(name, tuples, next(self._versions))
            return known[1]


def _table(name: str, tuples: Tuples, version: int) -> Table:
    columns = {}
    for column, (key, values) in zip(tuples.table.columns, tuples.columns().items(), strict=True):
        described = TableColumn(key, 0, _KINDS.get(column.type, ColumnKind.NUMBER))
        known = values.is_valid().to_numpy(zero_copy_only=False)
        columns[key] = Column(described, np.zeros(len(values), np.int64), known, exact=values)
    return Table(name, len(tuples.rows), columns, version, Path(name))
