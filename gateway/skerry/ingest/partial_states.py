"""Partial state records of in-network aggregates: merged, and as batches of a stream.

The root merges what it has when it sends; records that come later (a mote that had to repeat) are merged
here, the same way. Source: TinyDB 2005, section 3.3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from skerry.expressions.aggregate_code import Cell
from skerry.expressions.aggregate_states import fitting, merge_cells
from skerry.planner.model.plans import MoteQuery
from skerry.planner.model.waits import EVERYBODY
from skerry.storage.log.record import Kind
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import NO_GROUP

_MOTES_MAXIMUM = 0xFFFF
#: A group: the value of each column that is grouped by; None: NULL.
Group = tuple[int | None, ...]
#: Of these a state over no reading has the sum 0, or is the difference that a late one makes (:mod:`skerry.planner.features.approximate`).
_SUMMED = (Aggregate.COUNT, Aggregate.SUM, Aggregate.AVG)


@dataclass(frozen=True, slots=True)
class Partial:
    """The state of one epoch. ``states``: (count, value) per field; value None: 64 bits do not hold it."""

    epoch: int
    motes: int
    states: tuple[tuple[int, int | None], ...]

    def group(self, query: MoteQuery) -> Group | None:
        """What its rows have in common, None for NULL; () where nothing is grouped by. None: no row of these motes has passed."""
        cells = [
            cell
            for column, cell in zip(query.columns, self.states, strict=True)
            if column.aggregate is Aggregate.GROUP
        ]
        if any(count == 0 and value == NO_GROUP for count, value in cells):
            return None
        return tuple(value if count else None for count, value in cells)


def from_packet(query: MoteQuery, body: Any) -> Partial:
    """A PARTIAL packet's state. Raises ValueError when it has more cells than the query."""
    missing = len(query.columns) - len(body.states)
    if missing < 0:
        raise ValueError(
            f"partial state record with {len(body.states)} cells: the query has {len(query.columns)}"
        )
    states = [
        (state.count, None if body.overflow & (1 << i) else state.value)
        for i, state in enumerate(body.states)
    ]
    # States at the end that are zero have been left out.
    return Partial(body.epoch, body.motes, (*states, *[(0, 0)] * missing))


def merge_partials(query: MoteQuery, parts: Iterable[Partial]) -> Partial:
    """All partial states of one epoch, and of one group, as one, in any order. Raises ValueError without any."""
    merged: Partial | None = None
    for part in parts:
        merged = part if merged is None else _merge(query, merged, part)
    if merged is None:
        raise ValueError("no partial states to merge")
    return merged


def _merge(query: MoteQuery, a: Partial, b: Partial) -> Partial:
    states: list[Cell] = []
    for i, column in enumerate(query.columns):
        one, other = a.states[i : i + column.cells], b.states[i : i + column.cells]
        if column.aggregate >= Aggregate.VARIANCE:
            states += merge_cells(column.aggregate, one, other)
        elif column.is_field:
            states.append(_merge_state(column.aggregate, one[0], other[0]))
    return Partial(a.epoch, min(a.motes + b.motes, _MOTES_MAXIMUM), tuple(states))


def _merge_state(
    kind: Aggregate, a: tuple[int, int | None], b: tuple[int, int | None]
) -> tuple[int, int | None]:
    count = a[0] + b[0]
    one, other = a[1], b[1]
    if one is None or other is None:
        return count, None
    if kind not in _SUMMED and (a[0] == 0 or b[0] == 0):
        return count, other if a[0] == 0 else one
    if kind is Aggregate.GROUP:
        return count, one
    if kind is Aggregate.MIN:
        return count, min(one, other)
    if kind is Aggregate.MAX:
        return count, max(one, other)
    return count, fitting(one + other)


def partials_schema(query: MoteQuery) -> pa.Schema:
    """Schema of :func:`partials_batch`."""
    fields = [(name, pa.int64()) for name in ("epoch", "motes", "kind", "wait", "revision")]
    for i in range(len(query.columns)):
        fields += [(f"count_{i}", pa.int64()), (f"value_{i}", pa.int64())]
    return pa.schema(fields)


def partials_batch(query: MoteQuery, partials: Sequence[Partial]) -> pa.RecordBatch:
    """Merged states, one row per epoch and group, as :class:`skerry.execution.residual.Rows` reads them."""
    rows = []
    for partial in partials:
        row: dict[str, int | None] = {
            "epoch": partial.epoch, "motes": partial.motes, "kind": Kind.TOLD, "wait": EVERYBODY, "revision": 0,
        }  # fmt: skip
        for i, (count, value) in enumerate(partial.states):
            row[f"count_{i}"], row[f"value_{i}"] = count, value
        rows.append(row)
    return pa.RecordBatch.from_pylist(rows, partials_schema(query))
