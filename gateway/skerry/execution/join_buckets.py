"""What executors run of window joins for each group, bucket and batch, and what comes of a batch: answers as batches for the log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from skerry.execution.join_sets import BUCKETS, PLACES, JoinSets, Member
from skerry.joins.executor import INPUT as OF_GROUP
from skerry.joins.executor import OUTPUT as FROM_GROUP
from skerry.joins.executor import BucketJoin, GroupState, merged
from skerry.joins.state import RunFiles
from skerry.planner.model import source_plans as plans
from skerry.sensors.evaluate import MOMENT, arrow_type
from skerry.storage.log.source_batches import SourceBatch

#: Columns that go in and come out; ``group`` '' has one row, whose block says which batch it is.
INPUT = f"joined STRING, version BIGINT, {OF_GROUP}"
OUTPUT = f"joined STRING, {FROM_GROUP}"
_COLUMNS = [part.split()[0] for part in OUTPUT.split(", ")]
#: In place of a stream: the group has gone, and its state with it.
GONE = -2
#: In place of rows kept: the group has failed, and the block says why.
FAILED = -1


class GroupsJoin:
    """``sets``: the joins as of a version; ``directory``: for large parts of the state; ``limit_bytes``: of a bucket."""

    def __init__(self, sets: Callable[[int], JoinSets], directory: Path, limit_bytes: int) -> None:
        self._sets, self._directory, self._limit = sets, directory, limit_bytes

    def __call__(
        self, key: tuple[str, int], frames: Iterable[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        """One batch of one bucket."""
        name, bucket = str(key[0]), int(key[1])
        rows = pd.concat(list(frames), ignore_index=True)
        if not name:
            yield _frame([("", 0, "", 0, 0, 0, 0, 0, bytes(rows["block"][0]))])
            return
        if (rows["stream"] == GONE).any():
            state.remove()
            return
        group = self._sets(int(rows["version"].max())).groups[name]
        files = RunFiles(self._directory / name)
        files.directory.mkdir(parents=True, exist_ok=True) if files.directory is not None else None
        own = rows[[part.split()[0] for part in OF_GROUP.split(", ")]]
        operator = BucketJoin(group.group, BUCKETS, files, self._limit)
        try:
            for frame in operator((bucket,), [own], state):
                frame.insert(0, "joined", name)
                yield frame
        except (RuntimeError, pa.ArrowException, OSError, MemoryError) as error:
            text = f"{type(error).__name__}: {error}" if not isinstance(error, RuntimeError) else str(error)
            yield _frame([(name, bucket, "", FAILED, 0, 0, 0, 0, text.encode())])


def _frame(rows: list[tuple[object, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=_COLUMNS)


@dataclass
class GroupNow:
    """How a group is: rows and bytes that it keeps, progress, and what it has counted; why it has failed."""

    rows: int = 0
    bytes: int = 0
    progress_us: int = 0
    late: int = 0
    trouble: str | None = None


@dataclass
class Joined:
    """What came of rows ``first`` .. ``end`` - 1 of the log, with the joins as of ``version``; up to version ``over`` no more comes of
    those that are over."""

    first: int
    end: int
    version: int
    over: int
    answers: tuple[SourceBatch, ...] = ()
    groups: dict[str, GroupNow] = field(default_factory=dict)


def joined_of(table: pa.Table, sets: Callable[[int], JoinSets], through: Mapping[int, int]) -> Joined | None:
    """What a batch came to; None: nothing. ``through``: by stream of answers, up to which row of the log they are known already."""
    rows = table.to_pylist()
    said = next((json.loads(row["block"]) for row in rows if not row["joined"]), None)
    if said is None:
        return None
    found = Joined(said["first"], said["end"], said["version"], said["over"])
    blocks: dict[tuple[str, str], list[bytes]] = {}
    for row in sorted(rows, key=lambda row: row["bucket"]):
        if row["joined"] and row["join"]:
            blocks.setdefault((row["joined"], row["join"]), []).append(row["block"])
        elif row["joined"]:
            _count(found.groups.setdefault(row["joined"], GroupNow()), row)
    groups, made = sets(found.version).groups, []
    for (group, name), parts in blocks.items():
        member = groups[group].members[name]
        batch = _batch(member, name, parts, found.end, through.get(plans.ANSWERS + int(name), 0))
        made += [batch] if batch is not None else []
    found.answers = tuple(made)
    return found


def _count(group: GroupNow, row: Mapping[str, int | bytes]) -> None:
    if row["rows"] == FAILED:
        group.trouble = bytes(row["block"]).decode()
        return
    group.rows += int(row["rows"])
    group.bytes += int(row["bytes"])
    group.progress_us = max(group.progress_us, int(row["progress"]))
    group.late += int(row["late"])


def _batch(member: Member, name: str, parts: list[bytes], end: int, through: int) -> SourceBatch | None:
    """A join's answers as rows of a stream of the log; None: they are there already."""
    counted = member.join.graph.has_rows
    answers = merged(parts, member.join.aliases, by_time=counted)
    if answers is None or (counted and end <= through):
        return None
    if not counted:
        # An answer comes with the last of its rows.
        last = np.maximum.reduce([answers.column(f"{one}.number").to_numpy() for one in member.join.aliases])
        answers = answers.filter(pa.array(last >> PLACES >= through))
    count = answers.num_rows
    if not count:
        return None
    now_us = time.time_ns() // 1000
    columns = {
        plans.SOURCE: pa.array(np.zeros(count, np.int64)),
        plans.TIME: answers.column("time").cast(MOMENT),
        plans.ARRIVAL: pa.array(np.full(count, now_us)).cast(MOMENT),
    }
    for column, made in member.select.items():
        columns[column] = answers.column(f"{made.alias}.{made.name}").cast(arrow_type(made.type))
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    latest = int(np.max(answers.column("time").to_numpy()))
    return SourceBatch(plans.ANSWERS + int(name), count, latest, now_us, bytes(sink.getvalue()), end)
