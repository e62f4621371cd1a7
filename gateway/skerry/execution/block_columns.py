"""What a block has (:mod:`skerry.execution.blocks`), for who only has to name it: the processes in which Spark plans load nothing else of
what works on rows."""

from __future__ import annotations

import pyarrow as pa

#: The columns of a block and their types, as Arrow names them. ``first``, ``end``: rows of the log that the whole batch is of, ``whole``:
#: how many they are; ``count``: how many of them its partition has, the batch's number ``part``, and which ``streams`` (int64);
#: ``version``: of the users' index. Then :class:`skerry.execution.matched.Matched`: ``rows`` is an Arrow IPC stream with the column
#: ``row`` before those of the batch, the others are bytes of arrays. Or ``panes`` of rows that were folded for the entry ``windows``, an
#: Arrow IPC stream of one row with the parts of :class:`skerry.execution.partial_panes.PartialPanes`.
COLUMNS = {
    "first": pa.int64(), "end": pa.int64(), "whole": pa.int64(), "part": pa.int64(), "count": pa.int64(),
    "streams": pa.binary(), "version": pa.int64(), "stream": pa.int64(), "rows": pa.binary(), "places": pa.binary(),
    "hits": pa.binary(), "joined": pa.binary(), "windows": pa.int64(), "panes": pa.binary(),
}  # fmt: skip
