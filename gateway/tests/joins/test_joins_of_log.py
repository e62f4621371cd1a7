"""From SQL over the log to answers in the log, without Spark: what its data source, its operator and its batches come to, cut anywhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from gateway.tests.joins import users_joins
from gateway.tests.joins.drawn import SECOND, SITES, TEXTS, Case, Row, decided, draw_any, expected
from gateway.tests.joins.users_joins import Aggregated
from skerry.execution.join_buckets import GroupsJoin, Joined, joined_of
from skerry.execution.source_matching import delivered
from skerry.execution.source_rows import SourceRows, read
from skerry.joins.conditions import Column, Compared
from skerry.joins.join import Join, Step
from skerry.joins.progress import AT_END
from skerry.joins.windows import Window
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import SourcePlan
from skerry.sensors.definitions import SensorTable, define
from skerry.sensors.evaluate import MOMENT
from skerry.sensors.made_streams import table_of
from skerry.sensors.planning import planned
from skerry.spark import join_file
from skerry.spark.join_file import JoinFile
from skerry.spark.join_source import JoinReader
from skerry.sql import sensor_statements
from skerry.sql.sensor_statements import CreateSensors
from skerry.storage.log import stream_log
from skerry.storage.log.source_batches import SourceBatch, SourceFiles, Through, through_of
from skerry.storage.log.stream_log import StreamLog
from skerry.windows.source_windows import Brought, SourceWindows, SourceWindowView


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
        self.through: dict[int, Through] = {}
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


def statics(tuples: list[int]) -> dict[str, pa.Array]:
    """Static columns of the rows of these."""
    columns = zip(*((one, one // 2, *SITES[one]) for one in tuples), strict=True)
    kinds = {
        "id": pa.int64(),
        "kind": pa.int64(),
        "zone": pa.int64(),
        "xpos": pa.float64(),
        "ypos": pa.float64(),
    }
    return {name: pa.array(column, kind) for (name, kind), column in zip(kinds.items(), columns, strict=True)}


def batch_of(rows: list[dict[str, object]]) -> SourceBatch:
    """As intake makes it; a row's ``id`` is its tuple's number less one."""
    times = [row["at"] for row in rows]
    made = pa.table({
        plans.SOURCE: pa.array([int(str(row["id"])) + 1 for row in rows], pa.int64()),
        plans.TIME: pa.array(times, pa.int64()).cast(MOMENT),
        plans.ARRIVAL: pa.array(times, pa.int64()).cast(MOMENT),
        **statics([int(str(row["id"])) for row in rows]),
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
    """Of four streams of two sources, of which one stream is silent at first."""
    found: list[dict[str, object]] = []
    silent, until = chance.randrange(4), chance.randrange(count)
    for n in range(count):
        of = chance.choice([one for one in range(4) if one != silent or n >= until])
        late = chance.choice([0, 0, 0, 1, 3, 11]) * SECOND if chance.random() < 0.3 else 0
        found.append({
            "id": 2 * of + chance.randrange(2), "n": n, "item": chance.choice([None, 0, 1, 1, 2, -1]), "name": chance.choice(TEXTS),
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


def plan_of(sql: str) -> SourcePlan:
    """Of a join."""
    plan = planned(sql, {"drawn": table()})
    assert plan is not None
    assert plan.sources is not None
    assert plan.sources.join is not None
    return plan.sources


def windows_of(log: Path, plan: SourcePlan) -> Counter[tuple[object, ...]]:
    """The same of one that aggregates: its windows, and behind the last record those that have not come yet."""
    first, records = stream_log.read_there(log, 0, stream_log.length(log))
    numbers = np.arange(first, first + len(records), dtype=np.int64)
    mine = records["stream"] == plan.stream
    windows, found = SourceWindows(lambda *_: None), Counter[tuple[object, ...]]()
    views = windows.add("ada", plan, 0, 0)
    # Record for record, as they come: what WAIT says where nobody does is long enough for all of a window's answers.
    ends = [*(numbers[mine][1:].tolist() or []), len(records)] if mine.any() else []
    for number, record, end in zip(numbers[mine], records[mine], ends, strict=True):
        for stream, rows in read(SourceFiles(log), np.array([number]), np.array([record])).items():
            found += _windowed(windows, views, windows.process(stream, rows, end))
    windows.end("ada", len(records))
    assert plan.stream is not None
    nothing = SourceRows(np.zeros(0, np.int64), {})
    return found + _windowed(windows, views, windows.process(plan.stream, nothing, len(records) + 1))


def _windowed(
    windows: SourceWindows, views: Mapping[Hashable, SourceWindowView], brought: Brought
) -> Counter[tuple[object, ...]]:
    assert not windows.exceeded
    found: Counter[tuple[object, ...]] = Counter()
    for key, part in brought.parts.items():
        delivery = part.delivery(views[key]) if key in views else None
        if delivery is not None:
            found.update(users_joins.given(row) for row in delivery.columns.to_pylist())
    return found


#: Joins beside each other, and those of them whose answers are aggregated.
JOINS, WINDOWED = 80, 20


def test_eighty_drawn_joins_beside_each_other_answer_what_duckdb_does(
    tmp_path: Path, drawn_seed: int
) -> None:
    chance, connection = random.Random(drawn_seed), duckdb.connect()
    log, file = StreamLog(tmp_path), JoinFile(tmp_path)
    joins = {str(place): draw_any(drawn_seed + place).join for place in range(JOINS)}
    windowed: dict[str, Aggregated] = {}
    for name in [str(place) for place in range(JOINS) if place % (JOINS // WINDOWED) == 1]:
        joins[name], windowed[name] = Aggregated.draw(chance, joins[name])
    made = {name: plan_of(users_joins.sql(join, windowed.get(name))) for name, join in joins.items()}
    # Some come when others have had rows, and one goes.
    later, since = {str(place) for place in range(JOINS * 2 // 3, JOINS)}, dict.fromkeys(joins, 0)
    file.append([["join", name, 0, made[name].join.executed()] for name in joins if name not in later])  # type: ignore[union-attr]
    running, rows = Running(tmp_path), drawn_rows(chance, 100)
    running.offset = running.reader.initialOffset()
    at, loss = 0, 70
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
        if at > loss or chance.random() < 0.1:
            # The gateway and its driver start again; once, what joins have kept is lost, and made again of the log's rows.
            file.close()
            file = JoinFile(tmp_path)
            running = _begun_again(tmp_path, running, log, lost=at > loss)
            loss = len(rows) if at > loss else loss
    while _go_on(running, log, chance):
        pass
    assert {path.name for path in (running.path / "runs").iterdir()} <= {*file.sets.groups}
    total = 0
    for name, join in joins.items():
        if name == "0":
            continue
        group = file.sets.groups[file.sets.group_of[name]]
        # Joins that share what is kept share progress, too: it began with the first of them.
        streams, own = users_joins.logged(tmp_path, group.since)
        expected = users_joins.answers(join, streams, own, connection, since[name])
        plan = made[name]
        numbered = replace(plan, stream=plans.ANSWERS + int(name))
        aggregated = windowed.get(name)
        said = f"seed {drawn_seed + int(name)}: {users_joins.sql(join, aggregated)}"
        if aggregated is not None:
            expected = aggregated.expected(join, expected, connection)
            assert windows_of(log.path, numbered) == expected, said
        else:
            assert answers_of(log.path, numbered) == expected, said
        total += expected.total()
    assert total > 300


MADE = {
    "x": "SELECT a.item, a.name, b.level FROM drawn a LEFT JOIN drawn b ON b.kind = 1 AND a.item = b.item WINDOW 3 s "
    "WHERE a.kind = 0 LATENESS 5 s",
    "y": "SELECT item, name, level FROM drawn WHERE kind IN (2, 3) AND item >= 0",
}
FURTHER = "SELECT time, a.name AS one, a.level AS met, b.name AS other FROM x AS a JOIN y AS b ON a.item = b.item WINDOW 6 s LATENESS 20 s"


def test_streams_of_streams_are_joined_further_as_duckdb_joins_them(tmp_path: Path, drawn_seed: int) -> None:
    chance, connection = random.Random(drawn_seed), duckdb.connect()
    log, file, tables = StreamLog(tmp_path), JoinFile(tmp_path), {"drawn": table()}
    for number, (name, select) in enumerate(MADE.items(), 1):
        plan = planned(f"CREATE STREAM {name} AS {select}", tables)
        assert plan is not None
        assert plan.sources is not None
        assert plan.sources.join is not None
        file.append([["join", str(number), 0, plan.sources.join.executed()]])
        tables[name] = table_of(plan.sources, "ada", str(number))
    further = planned(FURTHER, tables)
    assert further is not None
    assert further.sources is not None
    assert further.sources.join is not None
    file.append([["join", "3", 0, further.sources.join.executed()]])
    running, rows, at = Running(tmp_path), drawn_rows(chance, 150), 0
    while at < len(rows):
        size = chance.choice([1, 2, 3, 7])
        log.append_sources([batch_of(rows[at : at + size])])
        at += size
        if chance.random() < 0.4:
            _go_on(running, log, chance)
    while _go_on(running, log, chance):
        pass
    streams, _ = users_joins.logged(tmp_path, 0)
    left = Join(
        {"a": "s0", "b": "s1"}, {frozenset("ab"): Window(3 * SECOND)},
        None, (Column("a", "item"), Column("a", "name"), Column("b", "level")), 5 * SECOND,
        (Step("left", Compared("=", Column("a", "item"), Column("b", "item"))),),
    )  # fmt: skip
    case = Case(left, {"s0": [], "s1": [], **streams})
    there = [row for row in expected(case, connection) if decided(case, row[1:3]) != AT_END]  # type: ignore[arg-type]
    x, y = (rows_of_made(log.path, tables[name]) for name in MADE)
    assert Counter((row[1], *row[4:7]) for row in x) == Counter((row[0], *row[3:]) for row in there)
    right = [
        row for name in ("s2", "s3") for row in streams.get(name, []) if row[4] is not None and row[4] >= 0
    ]
    assert Counter((row[1], *row[4:7]) for row in y) == Counter((row[1], *row[4:7]) for row in right)
    inner = Join(
        {"a": "x", "b": "y"}, {frozenset("ab"): Window(6 * SECOND)},
        Compared("=", Column("a", "item"), Column("b", "item")),
        (Column("a", "name"), Column("a", "level"), Column("b", "name")), 20 * SECOND,
    )  # fmt: skip
    answers = expected(Case(inner, {"x": x, "y": y}), connection)
    assert len(answers) > 30
    asked = replace(further.sources, stream=plans.ANSWERS + 3)
    assert answers_of(log.path, asked) == Counter((row[0], *row[3:]) for row in answers)


def rows_of_made(log: Path, made: SensorTable) -> list[Row]:
    """What the log has of a stream, as DuckDB is to have it."""
    first, records = stream_log.read_there(log, 0, stream_log.length(log))
    numbers = np.arange(first, first + len(records), dtype=np.int64)
    found: list[Row] = []
    for number, stream, batch in SourceFiles(log).tables(numbers, records):
        for place, row in enumerate(batch.to_pylist() if stream == made.stream_number else []):
            at = round(row["_time"].timestamp() * 1e6)
            values = row["row.item"], row["row.name"], row["row.level"]
            found.append(
                ((number << users_joins.PLACES) + place, at, at, row["_source"], *values, None, None, None)
            )
    return found


def _begun_again(data: Path, before: Running, log: StreamLog, *, lost: bool) -> Running:
    """Another driver; ``lost``: what joins have kept is."""
    running = Running(data)
    running.through = through_of(stream_log.read_there(log.path, 0, log.rows)[1], plans.ANSWERS)
    if not lost:
        running.offset, running.states = before.offset, before.states
    return running


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
