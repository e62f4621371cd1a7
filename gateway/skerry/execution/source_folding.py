"""Rows of sources that are no motes, folded for windows: by record of the log, pane of time and group.

A record is a batch of a source's rows, which is in the log whole or not at all, and is never cut. So what windows give is a function of the
log if each record is taken as one: its greatest time moves the windows' time, once all of its rows are counted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry.execution.matched import HIT, Matched
from skerry.execution.source_rows import JOINED_ROWS, SourceRows
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_windows import SourceFold
from skerry.sensors.evaluate import evaluate, passes
from skerry.sensors.folding import folded, normal

#: Columns beside groups ``g0`` … and states ``s0`` …: a record's line comes first, and has its greatest time, in µs, and no pane.
NUMBER, PANE, TIME = "number", "pane", "time"


def folded_rows(fold: SourceFold, rows: SourceRows) -> pa.Table:
    """Rows of one stream, of which there are some, in the order of the log."""
    numbers, times = rows.numbers, rows.columns[plans.TIME].cast(pa.int64()).to_numpy()
    begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    records = pa.table(
        [pa.array(numbers[begins]), pa.array(np.maximum.reduceat(times, begins))], [NUMBER, TIME]
    )
    parts = (rows,) if fold.lookups is None else rows.parts(JOINED_ROWS)
    cells = [_cells(fold, part.with_tables(fold.lookups)) for part in parts]
    found = pa.concat_tables([records, *cells], promote_options="default")
    # The sort is not said to be stable.
    order = np.lexsort([np.arange(found.num_rows), found.column(NUMBER).to_numpy()])
    return found.take(pa.array(order))


def _cells(fold: SourceFold, rows: SourceRows) -> pa.Table:
    """By record, pane and group what is kept of rows that pass."""
    numbers, times = rows.numbers, rows.columns[plans.TIME].cast(pa.int64()).to_numpy()
    places = pc.indices_nonzero(passes(fold.where, rows.columns, len(numbers)))
    taken = {name: column.take(places) for name, column in rows.columns.items()}
    chosen, count = places.to_numpy(), len(places)
    keys = {
        NUMBER: pa.array(numbers[chosen]),
        PANE: pa.array(times[chosen] // (1000 * fold.width_ms)),
        **{f"g{i}": normal(evaluate(term, taken, count)) for i, term in enumerate(fold.groups)},
    }
    return folded(keys, fold.states, taken, count)


def matched(entry: int, fold: SourceFold, rows: SourceRows) -> Matched:
    """The same as what executors give back of an entry of the users' index, under a number that no stream has."""
    [batch] = folded_rows(fold, rows).combine_chunks().to_batches()
    numbers = batch.column(NUMBER).to_numpy()
    hits = np.array([(entry, 0, len(numbers))], HIT)
    return Matched(-entry, numbers, batch, np.arange(len(numbers), dtype=np.int32), hits)
