"""Answers as a table, in an order that does not depend on the batches in which rows came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skerry.joins.join import Join
from skerry.joins.pool import View
from skerry.joins.progress import Int64

#: In answers of LEFT and ASOF JOIN: the number of the row with which they came; of windows of rows: that of the latest row.
DECIDED = "decided"


def table_of(
    join: Join, views: Sequence[View], places: Sequence[Int64], *, by_time: bool = False
) -> pa.Table:
    """``time``, that of the latest row; each alias's number in the log; what was selected. In the order of the row with which an answer
    came: the one with the highest number, or ``by_time`` the latest one."""
    numbers = [view.whole("number", own) for view, own in zip(views, places, strict=True)]
    times = [view.whole("time", own) for view, own in zip(views, places, strict=True)]
    last = np.maximum.reduce(times)
    if by_time:
        latest = np.maximum.reduce(
            [np.where(own == last, number, -1) for own, number in zip(times, numbers, strict=True)]
        )
        order = np.lexsort([*numbers[::-1], latest, last])
        decided = {DECIDED: pa.array(latest[order])}
    else:
        order = np.lexsort([*numbers[::-1], np.maximum.reduce(numbers)])
        decided = {}
    columns = {"time": pa.array(last[order]), **decided}
    columns |= {
        f"{alias}.number": pa.array(own[order]) for alias, own in zip(join.aliases, numbers, strict=True)
    }
    for column in join.select:
        place = join.aliases.index(column.alias)
        name = f"{column.alias}.{column.name}"
        if name not in columns:
            columns[name] = views[place].field(column.name, places[place][order])
    return pa.table(columns)
