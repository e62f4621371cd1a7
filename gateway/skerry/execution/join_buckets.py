"""What executors run of window joins for each group, bucket and batch, and what comes of a batch: answers as batches for the log."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from skerry.execution.join_sets import JoinSets, Member
from skerry.execution.mined_rows import PLACES, MinedGroup, answers_of
from skerry.execution.mining_buckets import MiningBucket, failed, packed, unpacked
from skerry.execution.range_index import Int64
from skerry.joins.answers import DECIDED
from skerry.joins.executor import INPUT as OF_GROUP
from skerry.joins.executor import OUTPUT as FROM_GROUP
from skerry.joins.executor import BucketJoin, GroupState, merged
from skerry.joins.join import Join
from skerry.joins.progress import NEVER
from skerry.joins.row_windows import ENDED_US
from skerry.joins.state import RunFiles
from skerry.mining.errors import MiningError
from skerry.planner.model import source_plans as plans
from skerry.sensors.evaluate import MOMENT, arrow_type, evaluate, passes
from skerry.sensors.made_streams import TUPLE
from skerry.storage.log.source_batches import NOTHING, SourceBatch, Through

#: Columns that go in and come out; ``group`` '' has one row, whose block says which batch it is.
INPUT = f"joined STRING, version BIGINT, {OF_GROUP}"
OUTPUT = f"joined STRING, {FROM_GROUP}"
_COLUMNS = [part.split()[0] for part in OUTPUT.split(", ")]
#: In place of a stream: the group has gone, and its state with it.
GONE = -2
#: Likewise: all sources of what is mined have ended.
ENDED = -3
#: In place of rows kept: the group has failed, and the block says why.
FAILED = -1


class GroupsJoin:
    """``sets``: the joins as of a version; ``directory``: for large parts of the state; ``limit_bytes``: of a bucket,
    where there are as many as there can be."""

    def __init__(self, sets: Callable[[int], JoinSets], directory: Path, limit_bytes: int) -> None:
        self._sets, self._directory, self._limit = sets, directory, limit_bytes

    def __call__(
        self, key: tuple[str, int], frames: Iterable[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        """One batch of one bucket. Raises LostRunError, OSError: it is to come again."""
        name, bucket = str(key[0]), int(key[1])
        rows = pd.concat(list(frames), ignore_index=True)
        if not name:
            yield _frame([("", 0, "", 0, 0, 0, 0, 0, bytes(rows["block"][0]))])
            return
        if (rows["stream"] == GONE).any():
            state.remove()
            # No bucket reads them any more.
            shutil.rmtree(self._directory / name, ignore_errors=True)
            return
        group = self._sets(int(rows["version"].max())).groups[name]
        if isinstance(group, MinedGroup):
            yield _mined(group, bucket, rows, state)
            return
        files = RunFiles(self._directory / name)
        files.directory.mkdir(parents=True, exist_ok=True) if files.directory is not None else None
        own = rows[[part.split()[0] for part in OF_GROUP.split(", ")]]
        operator = BucketJoin(group.group, group.buckets, files, group.limit_of_bucket(self._limit))
        try:
            for frame in operator((bucket,), [own], state):
                frame.insert(0, "joined", name)
                yield frame
        except (RuntimeError, pa.ArrowException, MemoryError) as error:
            text = f"{type(error).__name__}: {error}" if not isinstance(error, RuntimeError) else str(error)
            yield _frame([(name, bucket, "", FAILED, 0, 0, 0, 0, text.encode())])


def _mined(group: MinedGroup, bucket: int, rows: pd.DataFrame, state: GroupState) -> pd.DataFrame:
    """One batch of what is mined."""
    [query] = group.members
    try:
        operator = MiningBucket(group, bytes(state.get[0]) if state.exists else None)
        found = operator.add(unpacked(bytes(block))) if (block := b"".join(rows["block"])) else []
        found += operator.end() if (rows["stream"] == ENDED).any() else []
        value = operator.to_bytes()
    except (MiningError, pa.ArrowException, MemoryError) as error:
        text = str(error) if isinstance(error, MiningError) else f"{type(error).__name__}: {error}"
        state.update((failed(text),))
        return _frame([(group.name, bucket, "", FAILED, 0, 0, 0, 0, text.encode())])
    state.update((value,))
    out: list[tuple[object, ...]] = [
        (group.name, bucket, "", operator.rows, len(value), operator.time_us, 0, 0, b"")
    ]
    if found:
        out.append(
            (group.name, bucket, query, sum(map(len, found)), 0, operator.time_us, 0, 0, packed(found))
        )
    return _frame(out)


def _frame(rows: list[tuple[object, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=_COLUMNS)


@dataclass
class GroupNow:
    """How a group is: rows and bytes that it keeps, progress, None as long as there is none; rows that were late, or set aside; why it has
    failed; by stream the greatest time of its rows so far."""

    rows: int = 0
    bytes: int = 0
    progress_us: int | None = None
    late: int = 0
    ahead: int = 0
    trouble: str | None = None
    greatest_us: dict[str, int] = field(default_factory=dict)


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


def joined_of(
    table: pa.Table, sets: Callable[[int], JoinSets], through: Mapping[int, Through]
) -> Joined | None:
    """What a batch came to; None: nothing. ``through``: by stream of answers, how far they are known already."""
    rows = table.to_pylist()
    said = next((json.loads(row["block"]) for row in rows if not row["joined"]), None)
    if said is None:
        return None
    found = Joined(said["first"], said["end"], said["version"], said["over"])
    blocks: dict[tuple[str, str], list[bytes]] = {}
    greatest = said["greatest"]
    for row in sorted(rows, key=lambda row: row["bucket"]):
        if row["joined"] and row["join"]:
            blocks.setdefault((row["joined"], row["join"]), []).append(row["block"])
        elif row["joined"]:
            name = row["joined"]
            _count(found.groups.setdefault(name, GroupNow(greatest_us=greatest.get(name, {}))), row)
    groups, made = sets(found.version).groups, []
    for (group, name), parts in blocks.items():
        of = groups[group]
        if isinstance(of, MinedGroup):
            known = through.get(plans.ANSWERS + int(name), NOTHING)
            batch = answers_of(of, name, parts, found.end, known)
        else:
            stream = plans.answers_of(name, made=of.members[name].written is not None)
            batch = _batch(of.members[name], stream, parts, found.end, through.get(stream, NOTHING))
        made += [batch] if batch is not None else []
    found.answers = tuple(made)
    return found


def _count(group: GroupNow, row: Mapping[str, int | bytes]) -> None:
    if row["rows"] == FAILED:
        group.trouble = bytes(row["block"]).decode()
        return
    group.rows += int(row["rows"])
    group.bytes += int(row["bytes"])
    progress = int(row["progress"])
    if NEVER < progress < ENDED_US:
        group.progress_us = progress if group.progress_us is None else max(group.progress_us, progress)
    group.late += int(row["late"])
    group.ahead += int(row["ahead"])


def _batch(member: Member, stream: int, parts: list[bytes], end: int, through: Through) -> SourceBatch | None:
    """A join's answers as rows of a stream of the log; None: they are there already."""
    counted = member.join.graph.has_rows
    answers = merged(parts, member.join.aliases, by_time=counted)
    if answers is None:
        return None
    decided = _decided(member.join, answers)
    if counted:
        times = answers.column("time").to_numpy()
        new = (times > through.time_us) | ((times == through.time_us) & (decided > through.number))
    else:
        new = decided >> PLACES >= through.number
    if not new.any():
        return None
    # What comes as all sources end is behind all rows.
    upto = (
        Through(int(times[-1]), int(decided[-1]))
        if counted
        else Through(0, max(end, int(decided.max() >> PLACES) + 1))
    )
    table = columns_of(member, answers.filter(pa.array(new)))
    count, now_us = table.num_rows, time.time_ns() // 1000
    if not count:
        return None
    table = table.append_column(plans.ARRIVAL, pa.array(np.full(count, now_us)).cast(MOMENT))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    latest = int(np.max(table.column(plans.TIME).cast(pa.int64()).to_numpy()))
    return SourceBatch(stream, count, latest, now_us, bytes(sink.getvalue()), upto)


def columns_of(member: Member, answers: pa.Table) -> pa.Table:
    """What a join's answers are in the log."""
    columns = {plans.TIME: answers.column("time").cast(MOMENT).combine_chunks()}
    for column, made in member.select.items():
        values = answers.column(f"{made.alias}.{made.name}").cast(arrow_type(made.type))
        columns[column] = values.combine_chunks()
    count = answers.num_rows
    if member.written is None:
        return pa.table({plans.SOURCE: pa.array(np.zeros(count, np.int64)), **columns})
    written = {
        plans.SOURCE: pa.array(np.full(count, TUPLE)),
        plans.TIME: columns[plans.TIME],
        **{name: evaluate(term, columns, count) for name, term in member.written.items()},
    }
    return pa.table(written).filter(passes(member.asked, columns, count))


def _decided(join: Join, answers: pa.Table) -> Int64:
    """The number of the row with which each answer has come: the last of its own, where none had to be waited for. Of windows of rows:
    that of its latest row."""
    if join.is_outer or join.graph.has_rows:
        return np.asarray(answers.column(DECIDED).to_numpy(), np.int64)
    found: Int64 = np.maximum.reduce([answers.column(f"{one}.number").to_numpy() for one in join.aliases])
    return found
