"""What DuckDB answers to a join of which motes are a stream: rule by rule as docs/streams.md has them, over rows as the log has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from skerry.execution.join_sets import PLACES
from skerry.joins.join import StepKind
from skerry.planner.model.plans import Feed
from skerry.storage.log import stream_log
from skerry.storage.log.source_batches import SourceFiles
from skerry.streams.stream import Stream
from skerry_protocol.attributes import BY_NAME


@dataclass(frozen=True)
class Question:
    """A join as a user says it. ``streams``: by alias whose rows it has, which have passed its own conditions; ``select`` and ``where`` are
    DuckDB's; a window is of µs, or with ``rows`` of so many rows. ``kind``: how the second of two aliases is joined."""

    streams: Mapping[str, str]
    select: Sequence[str]
    where: str
    lateness_us: int
    window_us: int | None = None
    rows: int | None = None
    kind: StepKind = "inner"


def answers(
    asked: Question, tables: Mapping[str, pa.Table], connection: duckdb.DuckDBPyConnection
) -> Counter[tuple[object, ...]]:
    """Each with the time of its latest row first. ``tables``: each stream's rows with ``number``, ``time`` in µs and ``source``, which
    together are all that the join's progress is made of."""
    for name, table in tables.items():
        connection.register(f"said_{name}", table)
    named = [
        f"SELECT '{name}' AS stream, number, time FROM said_{name}"
        for name in dict.fromkeys(asked.streams.values())
    ]
    before = "max(time) OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE progress AS SELECT *, {before} AS before FROM ({' UNION ALL '.join(named)})"
    )
    for alias, name in asked.streams.items():
        order = "row_number() OVER (PARTITION BY source ORDER BY said.time, said.number)"
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE rows_of_{alias} AS SELECT said.*, {order} AS rank FROM said_{name} AS said "
            f"JOIN progress AS p ON p.stream = '{name}' AND p.number = said.number "
            f"WHERE p.before IS NULL OR said.time >= p.before - {asked.lateness_us}"
        )
    aliases = list(asked.streams)
    if asked.kind != "inner":
        return Counter(connection.execute(_stepped(asked)).fetchall())
    pairs = [(one, other) for place, one in enumerate(aliases) for other in aliases[place + 1 :]]
    within = [asked.where, *(_within(asked, one, other) for one, other in pairs)]
    tables_of = ", ".join(f"rows_of_{alias} AS {alias}" for alias in aliases)
    latest = f"greatest({', '.join(f'{alias}.time' for alias in aliases)})"
    sql = f"SELECT {latest}, {', '.join(asked.select)} FROM {tables_of} WHERE {' AND '.join(within)}"
    return Counter(connection.execute(sql).fetchall())


def _stepped(asked: Question) -> str:
    """LEFT and ASOF, so far as progress has decided it: which row is the latest, once it is past the first one's; that none is met, once it
    is past the window."""
    one, other = asked.streams
    asof = asked.kind.startswith("asof")
    on = [asked.where, _within(asked, one, other), *([f"{other}.time <= {one}.time"] if asof else [])]
    side = "LEFT" if asked.kind.endswith("left") else "INNER"
    progress = f"(SELECT max(time) FROM progress) - {asked.lateness_us}"
    known = f"{one}.time < {progress}"
    if not asof:
        known = f"({other}.time IS NOT NULL OR {one}.time + {asked.window_us} < {progress})"
    found = (
        f"SELECT greatest({one}.time, {other}.time), {', '.join(asked.select)} FROM rows_of_{one} AS {one} "
        f"{side} JOIN rows_of_{other} AS {other} ON {' AND '.join(on)} WHERE {known}"
    )
    if asof:
        order = f"PARTITION BY {one}.number ORDER BY {other}.time DESC, {other}.number DESC"
        found += f" QUALIFY row_number() OVER ({order}) = 1"
    return found


def _within(asked: Question, one: str, other: str) -> str:
    if asked.rows is None:
        return f"abs({one}.time - {other}.time) <= {asked.window_us}"

    def among(earlier: str, later: str) -> str:
        upto = (
            f"SELECT count(*) FROM rows_of_{earlier} AS x WHERE x.source = {earlier}.source "
            f"AND (x.time, x.number) <= ({later}.time, {later}.number)"
        )
        return f"({upto}) - {earlier}.rank < {asked.rows}"

    first = f"({one}.time, {one}.number) <= ({other}.time, {other}.number)"
    return f"CASE WHEN {first} THEN {among(one, other)} ELSE {among(other, one)} END"


def rows_of_motes(log: Path, feeds: Mapping[int, Feed], streams: Mapping[int, Stream]) -> pa.Table:
    """What motes have brought for a question, decoded here; the question's own condition is left to DuckDB."""
    first, records = stream_log.read_there(log, 0, stream_log.length(log))
    found: list[dict[str, Any]] = []
    for place, record in enumerate(records):
        feed, stream = feeds.get(int(record["stream"])), streams.get(int(record["stream"]))
        if feed is None or stream is None:
            continue
        sample_ms, node = int(record["epoch"]) * stream.mote_query.period_ms, int(record["node"])
        if not feed.passes(sample_ms):
            continue
        row: dict[str, Any] = {"nodeid": node, "epoch": sample_ms // feed.period_ms}
        for i, column in enumerate(stream.mote_query.columns):
            value = None if int(record["nulls"]) >> i & 1 else int(record["value"][i])
            digits = BY_NAME[column.name].digits
            row.setdefault(column.name, value if not digits or value is None else value / 10**digits)
        found.append(
            {**row, "number": (first + place) << PLACES, "time": int(record["sample"]), "source": node}
        )
    whole = ("number", "time", "source", "nodeid", "epoch", "light", "room", "static_0")
    kinds = [(name, pa.int64()) for name in whole] + [
        (name, pa.float64()) for name in ("temp", "xpos", "ypos")
    ]
    return pa.Table.from_pylist(found, pa.schema(kinds))


def rows_of_source(log: Path, *fields: str) -> pa.Table:
    """Rows of the table of sensors that has these fields."""
    first, records = stream_log.read_there(log, 0, stream_log.length(log))
    numbers = np.arange(first, first + len(records), dtype=np.int64)
    found = []
    for number, _, table in SourceFiles(log).tables(numbers, records):
        for place, row in enumerate(table.to_pylist() if {*fields} <= {*table.column_names} else []):
            own = {"number": (number << PLACES) + place, "source": row["_source"]}
            at = round(row["_time"].timestamp() * 1e6)
            found.append({**own, "time": at, **{field.rpartition(".")[2]: row[field] for field in fields}})
    return pa.Table.from_pylist(found)
