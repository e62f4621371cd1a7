"""The newest row of each source in each record of the log: what queries FROM LATEST are answered from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skerry.execution.matched import HIT, Matched
from skerry.execution.source_rows import SourceRows
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import SourceNewest
from skerry.sensors.evaluate import arrow_type, passes

#: Columns beside the row's own: the record, the source's number, the row's time in µs, and whether static columns select it, which may
#: have changed since the row before.
NUMBER, SOURCE, TIME, CHOSEN = "number", "source", "time", "chosen"
OWN = "."


def newest_rows(newest: SourceNewest, rows: SourceRows) -> pa.RecordBatch:
    """By record and source, of rows of one stream in the order of the log, of which there are some; of those of one time the last one."""
    count = len(rows.numbers)
    times = rows.columns[plans.TIME].cast(pa.int64()).to_numpy()
    sources, numbers = rows.columns[plans.SOURCE].to_numpy(), rows.numbers
    order = np.lexsort([np.arange(count), times, sources, numbers])
    last = np.ones(count, np.bool_)
    last[:-1] = (np.diff(numbers[order]) != 0) | (np.diff(sources[order]) != 0)
    kept = order[last]
    places = pa.array(kept)
    own = [
        rows.columns[name].take(places) if name in rows.columns else pa.nulls(len(kept), arrow_type(kind))
        for name, kind in newest.columns
    ]
    chosen = passes(newest.chosen, rows.columns, count).take(places)
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers[kept]), pa.array(sources[kept]), pa.array(times[kept]), chosen, *own],
        [NUMBER, SOURCE, TIME, CHOSEN, *(OWN + name for name, _ in newest.columns)],
    )


def matched(entry: int, newest: SourceNewest, rows: SourceRows) -> Matched:
    """The same as what executors give back of an entry of the users' index, under a number that no stream has."""
    batch = newest_rows(newest, rows)
    numbers = batch.column(NUMBER).to_numpy()
    hits = np.array([(entry, 0, len(numbers))], HIT)
    return Matched(-entry, numbers, batch, np.arange(len(numbers), dtype=np.int32), hits)
