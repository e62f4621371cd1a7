"""What is mined in a stream for one query: which rows, dealt to buckets, and what has been found as rows of answers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry.execution.join_motes import MoteRows
from skerry.execution.range_index import Int64
from skerry.execution.stream_rows import StreamRows
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term
from skerry.sensors.evaluate import MOMENT, arrow_type, evaluate, passes
from skerry.sensors.table_functions import FUNCTIONS, ROWS
from skerry.storage.log.record import Records
from skerry.storage.log.source_batches import NOTHING, SourceBatch, Through

#: Rows of a record of the log have numbers of their own: its number, and behind so many bits the place in it.
PLACES = 20
#: How far answers are there once all sources have ended.
AT_END = Through(0, 1 << 62)
#: Columns of rows that are mined, and of what is found, beside those that are mined and those that are shown.
NUMBER, TIME, SOURCE, LAST = "number", "time", "source", "last"


@dataclass
class MinedGroup:
    """``name``: its own, never given twice; ``spec``: as the planner says it (:mod:`skerry.sensors.mining_planning`); ``since``: the first
    row of the log that it has. ``ended``: no more rows come. Its one member is the query."""

    name: str
    spec: Mapping[str, Any]
    since: int
    members: dict[str, None] = field(default_factory=dict)
    ended: bool = False
    #: That its stream has ended is told to all buckets.
    waits: bool = True

    @property
    def algorithm(self) -> str:
        """What mines."""
        return str(self.spec["mines"]).upper()

    @property
    def streams(self) -> dict[str, tuple[int, Term | None]]:
        """The log's stream, where its sources are no motes, and the condition on its rows."""
        return {} if self.motes else {"": (int(self.spec["number"]), self.where)}

    @property
    def where(self) -> Term | None:
        """Which rows are mined, of those that motes are asked for all."""
        where = self.spec["where"]
        return Term.from_list(where) if where is not None else None

    @property
    def motes(self) -> dict[str, str]:
        """What motes are asked, where its sources are motes."""
        asked = self.spec["motes"]
        return {"": asked} if asked is not None else {}

    @property
    def by_source(self) -> bool:
        """Whether each source is mined by itself."""
        return FUNCTIONS[self.spec["mines"]].by_source

    @property
    def terms(self) -> list[Term]:
        """What is mined of each row."""
        return [Term.from_list(term) for term in self.spec["columns"]]

    @property
    def kept(self) -> dict[str, str]:
        """Static columns that are shown beside what is found, with their types."""
        return {name: kind for _, alias, name, kind in self.spec["select"] if alias != self.spec["found"]}

    def remove(self, query: str) -> None:
        """The query is over."""
        del self.members[query]


def rows_of_group(
    group: MinedGroup,
    streams: Mapping[int, StreamRows],
    motes: Mapping[str, MoteRows],
    numbers: Int64,
    records: Records,
) -> pa.Table | None:
    """Those of some records of the log that are mined; None: there are none. ``streams``: their rows
    (:func:`skerry.execution.join_intake.rows_of`); ``motes``: which of the records are what motes were asked."""
    for rows in motes.values():
        among = rows.among(numbers, records) if len(records) else None
        return mined_of(group, among[0] << PLACES, among[1]) if among is not None else None
    found = next((streams[number] for number, _ in group.streams.values() if number in streams), None)
    return mined_of(group, found.numbers, found.columns) if found is not None else None


def mined_of(group: MinedGroup, numbers: Int64, columns: Mapping[str, pa.Array]) -> pa.Table | None:
    """Those of a stream's rows that are mined; None: there are none."""
    mine = passes(group.where, columns, len(numbers)).to_numpy(zero_copy_only=False) & (
        numbers >= group.since << PLACES
    )
    if not mine.any():
        return None
    places = pa.array(np.flatnonzero(mine))
    taken, count = {name: values.take(places) for name, values in columns.items()}, len(places)
    made = {
        NUMBER: pa.array(numbers[mine]),
        TIME: taken[plans.TIME].cast(pa.int64()),
        SOURCE: taken[plans.SOURCE],
        **{f"a{place}": evaluate(term, taken, count) for place, term in enumerate(group.terms)},
    }
    for name, kind in group.kept.items():
        found = taken.get(name)
        made[f"={name}"] = (
            found
            if found is not None and found.type == arrow_type(kind)
            else pa.nulls(count, arrow_type(kind))
        )
    return pa.table(made)


def dealt(group: MinedGroup, rows: pa.Table, buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """Rows by bucket."""
    if not group.by_source:
        yield 0, rows
        return
    of = rows[SOURCE].to_numpy() % buckets
    for bucket in np.unique(of).tolist():
        yield bucket, rows.filter(pa.array(of == bucket))


def answers_of(
    group: MinedGroup, query: str, blocks: list[bytes], end: int, through: Through = NOTHING
) -> SourceBatch | None:
    """What has been found in a batch up to row ``end`` of the log as rows of a stream of it; None: there is nothing, or all is there
    already, as far as ``through`` says."""
    tables = [pa.ipc.open_stream(block).read_all() for block in blocks]
    whole = pa.concat_tables(tables)
    numbers, last = whole[NUMBER].to_numpy(), whole[LAST].to_numpy(zero_copy_only=False)
    # What comes as sources end does so in one batch, and nothing after it.
    new = np.where(last, through != AT_END, numbers >> PLACES >= through.number)
    places = np.flatnonzero(new)[np.argsort(numbers[new], kind="stable")]
    if not len(places):
        return None
    found, now_us, count = whole.take(pa.array(places)), time.time_ns() // 1000, len(places)
    table = pa.table({
        plans.SOURCE: pa.array(np.zeros(count, np.int64)),
        plans.TIME: found[TIME].cast(MOMENT),
        plans.ARRIVAL: pa.array(np.full(count, now_us)).cast(MOMENT),
        **selected(group, found),
    })  # fmt: skip
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    latest = int(pc.max(found[TIME]).as_py())
    return SourceBatch(
        plans.ANSWERS + int(query),
        count,
        latest,
        now_us,
        bytes(sink.getvalue()),
        AT_END if last.any() else Through(0, end),
    )


def selected(group: MinedGroup, found: pa.Table) -> dict[str, pa.ChunkedArray]:
    """What the query reads of what operators have given, by its names."""
    own = group.spec["found"]
    return {
        name: found[column if alias == own else f"={column}"].cast(arrow_type(kind))
        for name, alias, column, kind in group.spec["select"]
    }


def found_schema(group: MinedGroup) -> pa.Schema:
    """Of what operators give."""
    own = FUNCTIONS[group.spec["mines"]].columns
    return pa.schema([
        (NUMBER, pa.int64()), (TIME, pa.int64()), (LAST, pa.bool_()), (ROWS, pa.int64()),
        *((name, arrow_type(kind)) for name, kind in own.items()),
        *((f"={name}", arrow_type(kind)) for name, kind in group.kept.items()),
    ])  # fmt: skip
