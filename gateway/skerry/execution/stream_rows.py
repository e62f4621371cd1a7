"""Rows of one of the log's streams for many who read it: what several of them take alike is made once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from skerry.execution.range_index import Int64
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.sensors.evaluate import evaluate, passes
from skerry.sensors.join_conditions import calculated, type_of

#: What is taken of rows is kept for the next who asks the same, of so many times the rows that there are.
_KEPT = 4


class StreamRows:
    """``numbers``: each row's, in the order of the log; ``columns``: of batches."""

    def __init__(self, numbers: Int64, columns: Mapping[str, pa.Array]) -> None:
        self.numbers, self.columns = numbers, columns
        self._chosen: dict[Term | None, StreamRows] = {}
        self._made: dict[tuple[str, pa.DataType], pa.Array] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def chosen(self, condition: Term | None, first: int) -> StreamRows:
        """Those for which the condition is true, from the number ``first`` on."""
        found = self._chosen.pop(condition, None)
        if found is None:
            true = passes(condition, self.columns, len(self)).to_numpy(zero_copy_only=False)
            found = self if true.all() else self._at(np.flatnonzero(true))
        self._keep(condition, found)
        before = int(np.searchsorted(found.numbers, first))
        if not before:
            return found
        return StreamRows(
            found.numbers[before:], {name: values.slice(before) for name, values in found.columns.items()}
        )

    def _keep(self, condition: Term | None, found: StreamRows) -> None:
        """The last ones that were asked for."""
        if found is not self:
            self._chosen[condition] = found
        while sum(map(len, self._chosen.values())) > _KEPT * len(self):
            del self._chosen[next(iter(self._chosen))]

    def _at(self, places: Int64) -> StreamRows:
        return StreamRows(self.numbers[places], _Taken(self.columns, pa.array(places)))

    def column(self, name: str, kind: pa.DataType) -> pa.Array:
        """A column of batches, NULL where there is none of this type, or one that is calculated of them."""
        key = name, kind
        if key not in self._made:
            self._made[key] = self._column(name, kind)
        return self._made[key]

    def _column(self, name: str, kind: pa.DataType) -> pa.Array:
        if name == plans.TIME:
            return self.columns[name].cast(kind)
        known = calculated(name)
        if known is None:
            found = self.columns.get(name)
            return pa.nulls(len(self), kind) if found is None or found.type != kind else found
        values = evaluate(known[1], self.columns, len(self))
        if pa.types.is_decimal(values.type) and not pa.types.is_decimal(kind):
            # By way of text, which is exact.
            values = values.cast(pa.string())
        elif kind == pa.string() and not pa.types.is_string(values.type):
            values = values.cast(type_of(plans.DECIMAL)).cast(pa.string())
        return values.cast(kind)


class _Taken(Mapping[str, pa.Array]):
    """Some rows of columns, each taken when it is asked for."""

    def __init__(self, columns: Mapping[str, pa.Array], places: pa.Array) -> None:
        self._columns, self._places = columns, places
        self._there: dict[str, pa.Array] = {}

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self._there:
            self._there[name] = self._columns[name].take(self._places)
        return self._there[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
