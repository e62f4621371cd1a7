"""What Spark's executors run: rows as opaque blocks in, answers as opaque blocks out, a bucket's state between batches.

Rows go through the JVM as Arrow bytes, a row of Spark's for each part of a batch, bucket and stream, as carrying them one by one costs more
than joining them. Each part of a batch has a row for each bucket, so that progress comes to a bucket whose keys are not met as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from skerry.joins.answers import DECIDED
from skerry.joins.buckets import Buckets
from skerry.joins.group import Group, PoolKey
from skerry.joins.progress import Course, Progress
from skerry.joins.rows import Rows, concatenated, decode, encode
from skerry.joins.state import BucketState, RunFiles

#: Columns that go in, with their types in Spark's DDL. ``part``: where in the batch the block's rows are; ``stream``: place of the rows'
#: stream among those that the group keeps, -1: the block is the course of
#: progress, for those who wait for it; ``late``, ``ahead``: in bucket 0 alone.
INPUT = "bucket INT, part BIGINT, stream INT, progress BIGINT, late BIGINT, ahead BIGINT, block BINARY"
#: Columns that come out: a row for each join that has answers, and one with join '' that tells of the bucket's state.
OUTPUT = "bucket INT, join STRING, rows BIGINT, bytes BIGINT, progress BIGINT, late BIGINT, ahead BIGINT, block BINARY"
STATE = "state BINARY"


class InputRow(NamedTuple):
    """See :data:`INPUT`."""

    bucket: int
    part: int
    stream: int
    progress: int
    late: int
    ahead: int
    block: bytes


def input_rows(
    group: Group, buckets: Buckets, part: int, rows: Mapping[PoolKey, Rows], progress: Progress
) -> Iterator[InputRow]:
    """What a part of a batch comes to; ``progress``: after it, with what it has counted."""
    places = {pool: place for place, pool in enumerate(group.needs)}
    course = progress.course.encode() if progress.course is not None else b""
    for bucket, own in enumerate(buckets.deal(rows)):
        counted = (progress.late, progress.ahead) if bucket == 0 else (0, 0)
        yield InputRow(bucket, part, -1, progress.us, *counted, course)
        for pool, dealt in own.items():
            if len(dealt):
                yield InputRow(bucket, part, places[pool], progress.us, 0, 0, encode(dealt))


class GroupState(Protocol):
    """Of Spark's state of a group what is used."""

    @property
    def exists(self) -> bool:
        """Whether there is a state."""

    @property
    def get(self) -> tuple[bytes]:
        """It."""

    def update(self, newValue: tuple[bytes]) -> None:
        """A new one."""

    def remove(self) -> None:
        """None any more."""


class BucketJoin:
    """The function of a bucket. ``files``: for large parts of the state, where all executors see them; ``limit_bytes``: of one bucket."""

    def __init__(self, group: Group, count: int, files: RunFiles, limit_bytes: int | None = None) -> None:
        self._group, self._buckets = group, Buckets(group, count)
        self._files, self._limit = files, limit_bytes

    def __call__(
        self, key: tuple[int], frames: Iterable[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        """One batch."""
        bucket = int(key[0])
        value = bytes(state.get[0]) if state.exists else None
        kept = BucketState(
            self._group, value, self._files, str(bucket), self._buckets.owned(bucket), self._limit
        )
        blocks = [row for frame in frames for row in frame.itertuples(index=False)]
        pools = list(self._group.needs)
        found: dict[PoolKey, list[Rows]] = {}
        for row in sorted(blocks, key=lambda row: row.part):
            if row.stream >= 0:
                found.setdefault(pools[row.stream], []).append(decode(row.block))
        progress = max(int(row.progress) for row in blocks)
        kept.count(sum(int(row.late) for row in blocks), sum(int(row.ahead) for row in blocks))
        rows = {pool: concatenated(parts) for pool, parts in found.items()}
        courses = sorted((row.part, bytes(row.block)) for row in blocks if row.stream < 0)
        answers = kept.operator.advance(rows, progress, Course.decode([block for _, block in courses]))
        state.update((kept.value(),))
        yield self._output(bucket, kept, answers)

    def _output(self, bucket: int, kept: BucketState, answers: Mapping[str, pa.Table]) -> pd.DataFrame:
        operator = kept.operator
        out = [(bucket, "", operator.rows, operator.bytes, operator.progress_us, kept.late, kept.ahead, b"")]
        for name, table in answers.items():
            if table.num_rows:
                out.append((bucket, name, table.num_rows, 0, operator.progress_us, 0, 0, table_bytes(table)))
        columns = [part.split()[0] for part in OUTPUT.split(", ")]
        return pd.DataFrame(out, columns=columns)


def table_bytes(table: pa.Table) -> bytes:
    """Answers as Arrow's IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def merged(blocks: Iterable[bytes], aliases: Iterable[str], *, by_time: bool = False) -> pa.Table | None:
    """A batch's answers of one join from all buckets, in the order of the log; None: there are none."""
    tables = [pa.ipc.open_stream(block).read_all() for block in blocks]
    if not tables:
        return None
    whole = pa.concat_tables(tables, promote_options="permissive")
    if len(tables) == 1 or by_time:
        # Windows of rows have one bucket.
        return whole
    numbers = [whole.column(f"{alias}.number").fill_null(-1).to_numpy() for alias in aliases]
    last = whole.column(DECIDED).to_numpy() if DECIDED in whole.column_names else np.maximum.reduce(numbers)
    return whole.take(pa.array(np.lexsort([*numbers[::-1], last])))
