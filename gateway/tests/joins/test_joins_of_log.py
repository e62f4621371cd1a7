"""From SQL over the log to answers in the log, without Spark: what its data source, its operator and its batches come to, cut anywhere."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from gateway.tests.joins import users_joins
from gateway.tests.joins.drawn import SECOND, TEXTS, draw
from skerry.execution.join_buckets import GroupsJoin, Joined, joined_of
from skerry.execution.source_matching import delivered, read
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import SourcePlan
from skerry.sensors.definitions import SensorTable, define
from skerry.sensors.evaluate import MOMENT
from skerry.sensors.planning import planned
from skerry.spark import join_file
from skerry.spark.join_file import JoinFile
from skerry.spark.join_source import JoinReader
from skerry.sql import sensor_statements
from skerry.sql.sensor_statements import CreateSensors
from skerry.storage.log import stream_log
from skerry.storage.log.source_batches import SourceBatch, SourceFiles
from skerry.storage.log.stream_log import StreamLog


class KeptState:
    """What Spark keeps of a bucket."""

    def __init__(self) -> None:
        self.value: tuple[bytes] | None = None

    @property
    def exists(self) -> bool:
        return self.value is not None

    @property
    def get(self) -> tuple[bytes]:
        assert self.value is not None
        return self.value

    def update(self, newValue: tuple[bytes]) -> None:
        self.value = newValue

    def remove(self) -> None:
        self.value = None


class Running:
    """The streaming query, a batch at a time."""

    def __init__(self, data: Path) -> None:
        self.path = data / join_file.DIRECTORY
        self.log = data / stream_log.DIRECTORY
        self.states: dict[tuple[str, int], KeptState] = {}
        self.through: dict[int, int] = {}
        self.sets = partial(join_file.sets_at, self.path / join_file.NAME)
        self.operator = GroupsJoin(self.sets, self.path / "runs", 1 << 30)
        self.reader = JoinReader(str(self.log), str(self.path))
        self.offset = self.reader.initialOffset()

    def batch(self, until: dict[str, int] | None = None) -> Joined | None:
        """The next one; None: nothing is new. ``until``: where one ends that comes again, as Spark has noted before it began."""
        offset = until or self.reader.latestOffset(self.offset, self.reader.getDefaultReadLimit())
        if offset == self.offset:
            return None
        [partition] = self.reader.partitions(self.offset, offset)
        rows = pa.Table.from_batches(self.reader.read(partition)).to_pandas()
        found = []
        for key, frame in rows.groupby(["joined", "bucket"]):
            state = self.states.setdefault(key, KeptState())
            found += list(self.operator(key, [frame], state))
        self.offset = offset
        return joined_of(
            pa.Table.from_pandas(pd.concat(found), preserve_index=False), self.sets, self.through
        )


def table() -> SensorTable:
    statement = sensor_statements.parse(users_joins.CREATE)
    assert isinstance(statement, CreateSensors)
    return define(statement, "ada", 1)


def batch_of(rows: list[dict[str, object]]) -> SourceBatch:
    """As intake makes it; a row's ``id`` is its tuple's number less one."""
    times = [row["at"] for row in rows]
    made = pa.table({
        plans.SOURCE: pa.array([int(str(row["id"])) + 1 for row in rows], pa.int64()),
        plans.TIME: pa.array(times, pa.int64()).cast(MOMENT),
        plans.ARRIVAL: pa.array(times, pa.int64()).cast(MOMENT),
        "id": pa.array([row["id"] for row in rows], pa.int64()),
        "reading.n": pa.array([row["n"] for row in rows], pa.int64()),
        "reading.item": pa.array([row["item"] for row in rows], pa.int64()),
        "reading.name": pa.array([row["name"] for row in rows], pa.string()),
        "reading.level": pa.array([row["level"] for row in rows], pa.float64()),
        "reading.at": pa.array(times, pa.int64()).cast(MOMENT),
    })  # fmt: skip
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    return SourceBatch(table().stream_number, len(rows), max(times), max(times), bytes(sink.getvalue()))  # type: ignore[type-var]


def drawn_rows(chance: random.Random, count: int) -> list[dict[str, object]]:
    """Of four sources, of which one is silent at first."""
    found: list[dict[str, object]] = []
    silent, until = chance.randrange(4), chance.randrange(count)
    for n in range(count):
        of = chance.choice([one for one in range(4) if one != silent or n >= until])
        late = chance.choice([0, 0, 0, 1, 3, 11]) * SECOND if chance.random() < 0.3 else 0
        found.append({
            "id": of, "n": n, "item": chance.choice([None, 0, 1, 1, 2, -1]), "name": chance.choice(TEXTS),
            "level": chance.choice([None, 0.0, -0.0, 0.5, 1.5, 2.0]), "at": 10**15 + n * SECOND // 3 - late,
        })  # fmt: skip
    return found


def answers_of(log: Path, plan: SourcePlan) -> Counter[tuple[object, ...]]:
    """What the log has for a user, as DuckDB has it."""
    first, records = stream_log.read_there(log, 0, stream_log.length(log))
    numbers = np.arange(first, first + len(records), dtype=np.int64)
    mine = records["stream"] == plan.stream
    rows = read(SourceFiles(log), numbers[mine], records[mine])
    found: Counter[tuple[object, ...]] = Counter()
    for of_stream in rows.values():
        delivery = delivered(plan, of_stream)
        if delivery is not None:
            found.update(users_joins.given(row) for row in delivery.columns.to_pylist())
    return found


def test_sixty_drawn_joins_beside_each_other_answer_what_duckdb_does(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**31)
    print(f"seed {seed}")
    chance, connection = random.Random(seed), duckdb.connect()
    log, file = StreamLog(tmp_path), JoinFile(tmp_path)
    joins = {str(place): draw(seed + place).join for place in range(60)}
    made = {}
    for name, join in joins.items():
        plan = planned(users_joins.sql(join), {"drawn": table()})
        assert plan is not None
        assert plan.sources is not None
        assert plan.sources.join is not None
        made[name] = plan.sources
    # Some come when others have had rows, and one goes.
    later, since = {str(place) for place in range(40, 60)}, dict.fromkeys(joins, 0)
    file.append([["join", name, 0, made[name].join.executed()] for name in joins if name not in later])  # type: ignore[union-attr]
    running, rows = Running(tmp_path), drawn_rows(chance, 100)
    running.offset = running.reader.initialOffset()
    at = 0
    while at < len(rows):
        size = chance.choice([1, 1, 2, 3, 7])
        log.append_sources([batch_of(rows[at : at + size])])
        at += size
        if later and at > 40:
            file.append([["join", name, log.rows, made[name].join.executed()] for name in later])  # type: ignore[union-attr]
            since |= dict.fromkeys(later, log.rows)
            file.append([["gone", "0"]])
            later.clear()
        if chance.random() < 0.4:
            _go_on(running, log, chance)
        if chance.random() < 0.1:
            # The gateway and its driver start again.
            file.close()
            file, offset, states = JoinFile(tmp_path), running.offset, running.states
            running, through = Running(tmp_path), running.through
            running.offset, running.states, running.through = offset, states, through
    while _go_on(running, log, chance):
        pass
    total = 0
    for name, join in joins.items():
        if name == "0":
            continue
        group = file.sets.groups[file.sets.group_of[name]]
        # Joins that share what is kept share progress, too: it began with the first of them.
        streams, own = users_joins.logged(tmp_path, group.since)
        expected = users_joins.answers(join, streams, own, connection, since[name])
        plan = made[name]
        numbered = SourcePlan(plan.table, plans.ANSWERS + int(name), plan.outputs, None, None, join=plan.join)
        assert answers_of(log.path, numbered) == expected, f"seed {seed + int(name)}: {users_joins.sql(join)}"
        total += expected.total()
    assert total > 300


def _go_on(running: Running, log: StreamLog, chance: random.Random) -> bool:
    """A batch, which may come again after its answers are in the log; whether there was one."""
    before = running.offset, {key: state.value for key, state in running.states.items()}
    found = running.batch()
    if found is None:
        return False
    for name, now in found.groups.items():
        assert now.trouble is None, name
    log.append_sources(list(found.answers))
    running.through |= {batch.stream: batch.through for batch in found.answers}
    if chance.random() < 0.2:
        until, running.offset = running.offset, before[0]
        for key, state in running.states.items():
            state.value = before[1].get(key)
        again = running.batch(until)
        assert again is not None
        assert not again.answers, "what is known does not come again"
    return True
