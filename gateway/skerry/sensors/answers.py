"""The answer to a query over rows that are all there: of static columns, and of the newest row of each source."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry.planner.model.source_plans import SourcePlan, Term
from skerry.sensors.aggregate_states import Merging
from skerry.sensors.evaluate import evaluate, passes, schema_of, shown
from skerry.sensors.looking_up import looked_up
from skerry.sensors.readings import Readings

#: Behind every row that a log will ever have: of it, tables are as they are now.
LATEST = 1 << 62


def answer(
    plan: SourcePlan,
    columns: Mapping[str, pa.Array],
    count: int,
    readings: Readings | None = None,
    number: int = LATEST,
) -> pa.RecordBatch:
    """Of so many rows with these columns; one that is not there is NULL in all. They are joined with tables as a row of the log with this
    number is."""
    if plan.lookups is not None:
        columns = columns or {"": pa.nulls(count)}
        numbers, columns = looked_up(plan.lookups, np.full(count, number, np.int64), columns, readings)
        count = len(numbers)
    if plan.grouping is None:
        return _chosen(plan, columns, count, plan.where)
    merging = Merging(plan.grouping, plan.where)
    merging.add(columns, count)
    return finished(plan, *merging.columns())


def finished(plan: SourcePlan, columns: Mapping[str, pa.Array], count: int) -> pa.RecordBatch:
    """Of a query that aggregates, of so many groups."""
    assert plan.grouping is not None
    return _chosen(plan, columns, count, plan.grouping.having)


def _chosen(plan: SourcePlan, own: Mapping[str, pa.Array], count: int, where: Term | None) -> pa.RecordBatch:
    places = pc.indices_nonzero(passes(where, own, count))
    if plan.order:
        names = [f"by{i}" for i in range(len(plan.order))]
        keys = pa.table([evaluate(term, own, count).take(places) for term, _ in plan.order], names)
        ways = [
            (name, "descending" if descending else "ascending")
            for name, (_, descending) in zip(names, plan.order, strict=True)
        ]
        places = places.take(pc.sort_indices(keys, sort_keys=ways))
    if plan.limit is not None:
        places = places.slice(0, plan.limit)
    return pa.RecordBatch.from_arrays(
        [shown(output.term, own, count).take(places) for output in plan.outputs], schema=schema_of(plan)
    )
