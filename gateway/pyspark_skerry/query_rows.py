"""Rows of a user's query, with its columns, as its own feed has them: from the log, for as long as feeds can be resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pyspark_skerry.reading import PIECE_ROWS, LogRows, Reading, records_of
from skerry.catalog.static_attributes import statics_of
from skerry.execution.residual import Residual, Rows
from skerry.execution.stream_batches import stream_batch
from skerry.planner.model.plans import Feed, Output, QueryPlan
from skerry.planner.model.storage_points import Point
from skerry.planner.planner import plan_point, plan_query
from skerry.sql.ast import CreatePoint
from skerry.sql.errors import QueryError
from skerry.storage.history.snapshot import Snapshot
from skerry.storage.log import stream_log
from skerry.storage.log.dating import noted_shifts, shifted
from skerry.storage.log.record import Block, Records
from skerry.storage.log.stream_log import RowsGoneError
from skerry.storage.state import DataError, published
from skerry.streams.stream import Stream

_UTC = pa.timestamp("us", tz="UTC")
#: Queries that are named where there is no such.
_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class QueryRows(Reading):
    """Rows of what option ``query`` names."""

    query: str
    plan_of_query: QueryPlan
    #: Rows before it are not the query's.
    position: int

    def whole_schema(self, snapshot: Snapshot) -> pa.Schema:
        """What each row has, and the query's own columns, whose names come first where they are the same."""
        del snapshot
        outputs = {output.name: output for output in self.plan_of_query.outputs}
        own = Residual(self.plan_of_query).schema()
        kept = [field for field in _common(self.plan_of_query) if field.name not in outputs]
        return pa.schema([*kept, *(field.with_metadata(_known(outputs[field.name])) for field in own)])

    def first(self, snapshot: Snapshot) -> int:
        """The first row of the log that may be the query's."""
        return max(self.position, stream_log.first(snapshot.log))

    def dropped(self, snapshot: Snapshot) -> int:
        """By where the log begins."""
        first = stream_log.first(snapshot.log)
        return first if first > self.position else 0

    def has_lost(self, snapshot: Snapshot, since_us: int) -> bool:
        """Whether rows that were sampled from a time on, UTC, are gone, as far as the first one that is there tells."""
        first, records = stream_log.read_there(snapshot.log, self.dropped(snapshot), snapshot.end)
        return first > self.position and bool(len(records) and since_us < int(records["sample"][0]))

    def plan(self, snapshot: Snapshot, start: int, end: int) -> list[InputPartition]:
        """The log's."""
        return self.log_parts(max(start, self.first(snapshot), self.bounds.row or 0), end)

    def tables(self, partition: InputPartition, names: Sequence[str]) -> Iterator[pa.Table]:
        """In the query's columns."""
        assert isinstance(partition, LogRows)
        snapshot = self.snapshot()
        feeds = feeds_of(entry_of(snapshot, self.query))
        residual = Residual(self.plan_of_query)
        for start in range(partition.start, partition.end, PIECE_ROWS):
            block = self._block(snapshot, start, min(start + PIECE_ROWS, partition.end))
            found = [
                self._of_stream(residual, snapshot.streams[number], feeds[number], rows, part)
                for number, rows, part in block.streams()
                if number in feeds and number in snapshot.streams
            ]
            if found:
                whole = pa.concat_tables(found).sort_by("row number")
                yield pa.table({name: whole.column(name) for name in names})

    def _block(self, snapshot: Snapshot, start: int, end: int) -> Block:
        try:
            first, records = start, records_of(snapshot, start, end)
        except RowsGoneError as error:
            if self.fail_on_loss:
                raise self.lost(self.snapshot(), f"row {start}", error.first) from None
            first, records = stream_log.read_there(snapshot.log, start, end)
        return Block(first, shifted(first, records, noted_shifts(self.data, end)))

    def _of_stream(
        self, residual: Residual, stream: Stream, feed: Feed, numbers: Any, records: Records
    ) -> pa.Table:
        rows = Rows(stream_batch(records, stream), stream.mote_query)
        places = residual.select(rows, feed)
        places = places[self._of_query(numbers[places], records[places])]
        places, own = residual.rows(rows, places)
        mine = records[places]
        columns: dict[str, Any] = {
            "row": numbers[places],
            "root": np.full(len(mine), stream.root, np.int64),
            "session": np.full(len(mine), stream.session, np.int64),
            "stream": np.full(len(mine), stream.number, np.int64),
            "epoch": mine["epoch"].astype(np.int64),
            "time": pa.array(mine["sample"].astype(np.int64)).cast(_UTC),
            "arrival": pa.array(mine["arrival"].astype(np.int64)).cast(_UTC),
            "motes": mine["motes"].astype(np.int64),
            "revision": mine["revision"].astype(np.int64),
        }
        columns |= dict(zip(own.schema.names, own.columns, strict=True))
        return pa.table(columns | {"row number": numbers[places]})

    def _of_query(self, numbers: Any, records: Records) -> Any:
        """Which rows the options do not leave out."""
        bounds, asked = self.bounds, np.ones(len(records), np.bool_)
        times = records["sample"]
        if bounds.row is not None:
            asked &= numbers >= bounds.row
        if bounds.since_us is not None:
            asked &= times >= bounds.since_us
        if bounds.until_us is not None:
            asked &= times < bounds.until_us
        if bounds.motes is not None:
            asked &= np.isin(records["node"], sorted(bounds.motes))
        return asked


def _common(plan: QueryPlan) -> list[pa.Field]:
    numbers = ["row", "root", "session", "stream", "epoch"]
    found = [pa.field(name, pa.int64()) for name in numbers]
    found += [pa.field(name, _UTC) for name in ("time", "arrival")]
    return found + [pa.field(name, pa.int64()) for name in ("motes", "revision") if plan.aggregate]


def _known(output: Output) -> dict[str, str] | None:
    return {"unit": output.unit, "digits": str(output.digits)} if output.unit or output.digits else None


def entry_of(snapshot: Snapshot, query: str) -> Mapping[str, Any]:
    """What the gateway remembers of a query. Raises DataError, which says which there are."""
    entry = published.query(snapshot.data, query)
    if entry is None:
        queries = dict(published.queries(snapshot.data))
        shown = [f"{name} ({queries[name]['sql']})" for name in list(queries)[-_NAMED:]]
        more = f"{len(queries) - _NAMED} older ones and " if len(queries) > _NAMED else ""
        raise DataError(
            f"data directory {snapshot.data} has no query {query}: it has {more}{'; '.join(shown) or 'none'}"
        )
    return entry


def feeds_of(entry: Mapping[str, Any]) -> dict[int, Feed]:
    """Which part of which stream is the query's."""
    return {int(number): Feed(*feed) for number, feed in entry["feeds"].items()}


def plan_of(snapshot: Snapshot, query: str) -> tuple[QueryPlan, int]:
    """A query's plan, and the row from which on rows are its own. Raises DataError, also where the gateway makes more of rows than is
    made of each."""
    entry = entry_of(snapshot, query)
    sql = entry["sql"]
    try:
        found = (
            plan_query(sql, _points(snapshot), statics=statics_of(entry["statics"]), restored=True)
            if not entry["joined"]
            else None
        )
        if isinstance(found, CreatePoint):
            _, found = plan_point(
                found, entry["point"], _points(snapshot, query), statics_of(entry["statics"]), restored=True
            )
    except QueryError as error:
        raise DataError(f"query {query} ({sql}) cannot be planned here: {error.summary}") from None
    why = None
    if found is None:
        why = "are joined with tables"
    elif not isinstance(found, QueryPlan):
        why = "are none of motes"
    elif found.window is not None:
        why = "are windows"
    elif found.history is not None:
        why = "begin in the past"
    if why is not None or not isinstance(found, QueryPlan):
        raise DataError(
            f"query {query} ({sql}): its rows {why}, which the gateway makes: read one of its streams with option stream in place of "
            "option query, and let Spark do so"
        )
    return found, int(entry["position"])


def _points(snapshot: Snapshot, but: str | None = None) -> dict[str, Point]:
    """Storage points by name in lower case, as they were made one after the other."""
    points: dict[str, Point] = {}
    for name, entry in published.queries(snapshot.data):
        if entry["point"] is None or name == but:
            continue
        statement = plan_query(entry["sql"], points, statics=statics_of(entry["statics"]), restored=True)
        if isinstance(statement, CreatePoint):
            point, _ = plan_point(
                statement, entry["point"], points, statics_of(entry["statics"]), restored=True
            )
            points[point.name.lower()] = point
    return points
