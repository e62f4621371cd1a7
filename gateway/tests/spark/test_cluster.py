"""A cluster of Spark's own: workers are lost while rows flow, and each user gets each of his rows once."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from gateway.tests.cluster import SPECULATION, Cluster, can_be_stale, session_of
from gateway.tests.joins.drawn import draw_any
from gateway.tests.joins.test_joins_of_log import batch_of, drawn_rows
from gateway.tests.killed import Site
from gateway.tests.logs import STREAMS, Log, happenings, logs, plan_of
from gateway.tests.pasts import (
    endless_past,
    joiner_of,
    past_engine,
    plain_records,
    rows_behind,
    shuffled,
    stream_of,
)
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, wait_for
from gateway.tests.spark.join_flow import JoinFlow
from gateway.tests.users import User, users
from skerry.delivery.engine import Engine
from skerry.execution.matched import MatchedBatch
from skerry.planner.model.joined_tables import JoinedTable
from skerry.planner.model.plans import Feed
from skerry.spark.index_file import IndexFile
from skerry.spark.log_source import SHARED
from skerry.spark.supervisor import SparkDriver
from skerry.storage.history.answer import Answer
from skerry.storage.history.engine.engine import PastEngine
from skerry.storage.history.engine.messages import ClusterSelect, Limits
from skerry.storage.history.engine.waiting import GivenUpError, Waiting
from skerry.storage.history.past_table import earlier_reader
from skerry.storage.history.reader import Reader
from skerry.storage.history.store import History
from skerry.storage.log.record import RECORD, Records
from skerry.storage.log.stream_log import StreamLog
from skerry.tables.join import Joiner
from skerry.tables.store import TableStore

#: Rows of a batch that joins take while something is lost.
JOINED = 25

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster") / "spark")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPARK_CONF_DIR", made.configuration)
        try:
            made.add_worker()
            made.add_worker()
            yield made
        finally:
            made.close()


class StartsAnew(Exception):
    """Ends the streaming query, which begins again with the batch that it had."""


class Flow:
    """A log and its streaming query on the cluster. Each example has rows of its own at the end of the log."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self._data, self._log, self._progress = directory, StreamLog(directory), directory / "checkpoint"
        self.spark = SparkDriver(cluster.url, directory, self._log.path, self._process)
        self.begin()
        self.spark.start()

    @property
    def directory(self) -> Path:
        """The log's."""
        return self._log.path

    @property
    def state(self) -> str:
        """The streaming query's."""
        return self.spark.state

    @property
    def under_way(self) -> bool:
        """Whether a batch has begun that is not done."""
        last = {
            part: max((int(file.name) for file in (self._progress / part).glob("[0-9]*")), default=-1)
            for part in ("offsets", "commits")
        }
        return last["offsets"] > last["commits"]

    def begin(self) -> None:
        """The next example's engine, whose first row is the next one."""
        self._base = self._log.rows
        self._then: Callable[[], object] | None = None
        self.restart()

    def restart(self) -> None:
        """Another engine, as of a gateway that starts anew and knows nobody yet."""
        index = IndexFile(self._data)
        self.engine = Engine(STREAMS.get, publish=index.append, version=index.version)

    def _process(self, batch: MatchedBatch) -> int:
        batch = batch.behind(self._base)
        first, end = batch.first - self._base, batch.end - self._base
        parts = tuple(replace(part, numbers=part.numbers - self._base) for part in batch.parts)
        count = self.engine.take(replace(batch, first=first, end=end, parts=parts))
        if self._then is not None:
            then, self._then = self._then, None
            then()
            raise StartsAnew
        return count

    def append(self, rows: Records, then: Callable[[], object] | None = None) -> None:
        """``then``: done when a batch of these has been through, which comes again after that."""
        if len(rows):
            self._then = then
            self._log.append(rows)

    def wait(self) -> None:
        """Until all has been through."""
        wait_for(lambda: self._then is None and self.engine.done == self._log.rows - self._base)

    def close(self) -> None:
        self.spark.stop()
        self._log.close()


@pytest.fixture(scope="class")
def flow(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    """Has all cores of the cluster."""
    cluster.configure(SPECULATION)
    made = Flow(cluster, tmp_path_factory.mktemp("flow"))
    wait_for(lambda: made.state == "running")
    cluster.configure()
    yield made
    made.close()


#: Of each kind one: groups, by epochs, too, windows over a join with a table, rows in an order beside their own past, rows one by one.
OF_THE_PAST = (
    "SELECT nodeid, AVG(temp), MEDIAN(light) FROM sensors GROUP BY nodeid HISTORY 7 day ONLY",
    "SELECT epoch, motes, SUM(light / temp), MAX(temp) FROM sensors HISTORY 7 day ONLY SAMPLE PERIOD 1 min",
    "SELECT s.epoch, p.name, AVG(s.temp, 5 min, 1 min), SUM(s.light, start, 5 min) FROM sensors s, places p "
    "WHERE p.node = s.nodeid AND NOT p.name LIKE '%i%' GROUP BY p.name HISTORY 7 day ONLY SAMPLE PERIOD 5 s",
    "SELECT s.temp, h.temp AS was FROM sensors s, sensors HISTORY 20 s AS h WHERE h.nodeid = s.nodeid AND h.light > s.light "
    "ORDER BY s.light DESC, was LIMIT 500 HISTORY 7 day ONLY SAMPLE PERIOD 5 s",
    "SELECT nodeid, light, time FROM sensors WHERE temp > 20.5 HISTORY 7 day ONLY",
    "SELECT nodeid, epoch, temp FROM sensors HISTORY 7 day ONLY SAMPLE PERIOD 30 s",
)  # fmt: skip


class Past:
    """Rows of two sessions, most of them in files, and a table."""

    def __init__(self, data: Path) -> None:
        self._streams = [
            stream_of(1, "SELECT temp, light, level FROM sensors SAMPLE PERIOD 5 s"),
            stream_of(2, "SELECT temp, light, level FROM sensors SAMPLE PERIOD 7 s", session=2),
        ]
        self._log, self._history = StreamLog(data), History(data)
        self._log.append(
            shuffled([plain_records(s, range(20, 220), [1, 2, 3], seed=s.number) for s in self._streams])
        )
        self._history.compact(self._log.path, self._log.rows - 150, self._streams)
        self._data, self._store = data, TableStore(data / "tables")
        places = pa.table({"node": [1, 2, 2, 3], "name": ["hall", "attic", None, "stairs"]})
        pq.write_table(places, data / "tables" / "places.parquet")

    def _reader(self, attributes: frozenset[int], since_us: int) -> Reader:
        return Reader(self._history, self._log.path, self._streams, attributes, since_us)

    def answered(self, sql: str, engine: PastEngine) -> list[tuple[object, ...]]:
        plan = plan_of(sql, self._store.schemas())
        joiner = (
            joiner_of(plan, self._data, self._store) if "places" in sql else Joiner(plan, self._store.get)
        )
        if not plan.probes:
            joiner = None  # type: ignore[assignment]

        def earlier(table: JoinedTable) -> Reader:
            return earlier_reader(plan, table, self._reader, lambda utc, span_ms: utc - span_ms / 1000, 0)

        answer = Answer(plan, self._reader(plan.attributes, 0), self._log.rows, engine, 0, joiner, earlier)
        found, position, more = list[tuple[object, ...]](), -1, True
        while more:
            rows, position, more = rows_behind(answer, position)
            found += [(number, *values.values()) for number, values in rows]
        return found


class Counted:
    """A cluster, with what it says of each question."""

    def __init__(self, spark: SparkDriver) -> None:
        self._spark, self.began = spark, 0
        self.troubles: list[str | None] = []

    def select(self, asked: ClusterSelect, waiting: Waiting) -> str | None:
        self.began += 1
        trouble = self._spark.select(asked, waiting)
        self.troubles.append(trouble)
        return trouble


#: For a real streaming query: it has had the batch that comes again, or that comes to a gateway which starts anew.
steps = happenings("come", "go", "read", most=4)


class TestWorkersAreLost:
    """While one streaming query goes on."""

    @settings(max_examples=2, phases=(Phase.explicit, Phase.reuse, Phase.generate))
    @given(log=logs(), waiting=st.lists(users, min_size=2, max_size=8), before=steps, after=steps)
    def test_each_user_gets_what_duckdb_answers_him_alone(
        self,
        cluster: Cluster,
        flow: Flow,
        log: Log,
        waiting: list[User],
        before: list[tuple[str, int]],
        after: list[tuple[str, int]],
    ) -> None:
        flow.begin()
        end = 0
        present: list[User] = []

        def restart() -> None:
            flow.restart()
            for user in present:
                user.join(flow.engine)

        try:
            for step, number in [
                ("come", 0),
                *before,
                ("come", 1),
                ("lose", 40),
                *after,
                ("rows", len(log.rows)),
            ]:
                match step:
                    case "rows" | "again" | "restart" | "lose":
                        first, end = end, min(end + number, len(log.rows))
                        then = {"again": lambda: None, "restart": restart}.get(step)
                        flow.append(log.records[first:end], then)
                        if step == "lose":
                            cluster.lose_worker()
                            cluster.add_worker()
                        flow.wait()
                    case "come" if waiting:
                        user = waiting.pop()
                        user.name, user.began, user.position = str(len(waiting)), end, end - 1
                        present.append(user)
                        user.join(flow.engine)
                    case "go" if present:
                        user = present.pop(number % len(present))
                        assert user.got == user.duckdb_rows(log, user.position + 1)
                        flow.engine.unsubscribe(user.name)
                    case "read" if present:
                        present[number % len(present)].read(flow.engine, log, end)
            for user in present:
                user.read(flow.engine, log, end)
                assert user.got == user.duckdb_rows(log, end)
        except duckdb.Error:
            assume(False)

    def test_one_is_lost_in_the_middle_of_a_batch_that_both_read(self, cluster: Cluster, flow: Flow) -> None:
        flow.begin()
        flow.engine.subscribe("u", plan_of("SELECT temp FROM sensors WHERE nodeid = 7 SAMPLE PERIOD 5 s"))
        flow.engine.set_feeds("u", {1: Feed("u", 1, 5000, 5000, 0)})
        rows = np.zeros(2 * SHARED, RECORD)
        rows["stream"], rows["epoch"], rows["node"] = 1, np.arange(len(rows)), np.arange(len(rows)) % 100
        flow.append(rows)
        wait_for(lambda: flow.under_way)
        cluster.lose_worker()
        cluster.add_worker()
        flow.wait()
        found = flow.engine.subscriber("u").buffer.after(-1)  # type: ignore[union-attr]
        assert [number for number, _ in found or []] == list(range(7, len(rows), 100))

    @pytest.mark.parametrize("rows", [1000, 2 * SHARED])
    def test_one_that_stands_still_loses_and_doubles_nothing_and_holds_up_nobody(
        self, cluster: Cluster, flow: Flow, rows: int, drawn_seed: int
    ) -> None:
        """Whether it has a batch's only task or one of two: others do what it has begun while it stands still."""
        wanted = {"ada": "nodeid = 7", "bob": "nodeid = 8 AND temp > 20 OR nodeid = 9", "eve": "temp > 51.5"}
        chance, parts = np.random.default_rng(drawn_seed), 4
        records = np.zeros(parts * rows, RECORD)
        temp = [column.name for column in STREAMS[1].mote_query.columns].index("temp")
        records["stream"], records["epoch"] = 1, np.arange(len(records))
        records["node"] = chance.integers(0, 100, len(records))
        records["value"][:, temp] = chance.integers(-2000, 5200, len(records))
        flow.begin()
        for name, where in wanted.items():
            flow.engine.subscribe(
                name, plan_of(f"SELECT nodeid, temp FROM sensors WHERE {where} SAMPLE PERIOD 5 s")
            )
            flow.engine.set_feeds(name, {1: Feed(name, 1, 5000, 5000, 0)})
        with cluster.slow_worker(random.Random(drawn_seed)):
            for part in range(parts - 1):
                flow.append(records[part * rows : (part + 1) * rows])
                flow.wait()
        # It goes on, and what it had begun comes to nobody a second time.
        flow.append(records[-rows:])
        flow.wait()
        columns = {"row": np.arange(len(records)), "nodeid": records["node"].astype(np.int64)}
        connection = duckdb.connect()
        connection.register("sensors", pa.table({**columns, "temp": records["value"][:, temp] / 100}))
        for name, where in wanted.items():
            found = flow.engine.subscriber(name).buffer.after(-1)  # type: ignore[union-attr]
            answer = connection.execute(f"SELECT * FROM sensors WHERE {where} ORDER BY row").fetchall()
            assert [(number, *values.values()) for number, values in found or []] == answer

    def test_the_past_is_answered_as_duckdb_answers_it(self, flow: Flow, tmp_path: Path) -> None:
        past = Past(tmp_path / "data")
        everything = Limits(threads=1, memory=2**30, disk=2**30, seconds=600, cluster_rows=1)
        asked = Counted(flow.spark)
        engine = PastEngine(tmp_path / "engine", everything, asked)
        for number, sql in enumerate(OF_THE_PAST, 1):
            found = past.answered(sql, engine)
            assert found == past.answered(sql, past_engine()), sql
            assert len(found) > 1
            assert len(asked.troubles) >= number, sql
        assert set(asked.troubles) == {None}
        assert list((tmp_path / "engine").iterdir()) == [], "nothing is left behind"
        engine.stop()

    def test_a_question_that_nobody_waits_for_ends_there_too(self, flow: Flow, tmp_path: Path) -> None:
        rows = endless_past(tmp_path).rows
        plan = plan_of("SELECT nodeid, VARIANCE(temp) FROM sensors GROUP BY nodeid HISTORY 7 day ONLY")
        reader = Reader(History(tmp_path), tmp_path / "log", [], plan.attributes, 0)
        limits = Limits(threads=1, memory=2**30, disk=2**30, seconds=600, cluster_rows=1)
        asked, waiting = Counted(flow.spark), Waiting()
        engine = PastEngine(tmp_path / "engine", limits, asked)
        with ThreadPoolExecutor() as pool:
            answer = pool.submit(Answer(plan, reader, rows, engine).after, -1, waiting)
            wait_for(lambda: asked.began == 1)
            waiting.go()
            with pytest.raises(GivenUpError):
                answer.result(120)
        [trouble] = asked.troubles
        assert trouble is not None
        engine.stop()

    def test_workers_that_do_not_see_the_log_say_so_and_nothing_is_lost(self, flow: Flow) -> None:
        flow.begin()
        hidden = flow.directory.with_name("hidden")
        flow.append(np.zeros(10, RECORD), lambda: flow.directory.rename(hidden))
        wait_for(lambda: "every worker must see the gateway's data directory" in flow.state)
        hidden.rename(flow.directory)
        flow.append(np.zeros(10, RECORD))
        flow.wait()


def test_joins_answer_once_what_duckdb_does_whatever_is_lost(
    cluster: Cluster, tmp_path: Path, drawn_seed: int
) -> None:
    chance, rows = random.Random(drawn_seed), drawn_rows(random.Random(drawn_seed), 5 * JOINED)
    joins = {str(place): draw_any(drawn_seed + place).join for place in range(8)}
    flow = JoinFlow(cluster.url, tmp_path, joins)

    def slow_worker() -> None:
        with cluster.slow_worker(chance):
            flow.append(batch_of(rows[:JOINED]))
            del rows[:JOINED]
            flow.begun()

    def lose_worker() -> None:
        cluster.lose_worker()
        # What the next one knows of the set of joins, of what they keep and of the log is some time old.
        cluster.add_worker(stale=tmp_path if can_be_stale() else None)

    try:
        for lose in (flow.kill_driver, slow_worker, lose_worker, lambda: None):
            flow.append(batch_of(rows[:JOINED]))
            del rows[:JOINED]
            flow.begun()
            lose()
            flow.wait()
        assert not rows
        assert flow.check() > 100
    finally:
        flow.close()


def test_each_feed_is_what_duckdb_answers_whatever_is_killed_and_workers_are_left_as_they_were(
    cluster: Cluster, peer: RootPeer, daemon: Daemon, drawn_seed: int
) -> None:
    def executors() -> list[int]:
        return [pid for worker in cluster.workers for pid in session_of(worker.pid)]

    def lose_worker() -> None:
        cluster.lose_worker()
        # The next one is as if it were another machine's, which sees files as they were a moment ago.
        cluster.add_worker(stale=daemon.data if can_be_stale() else None)

    site = Site(peer, daemon, drawn_seed, "--master", cluster.url)
    kills = [site.kill_gateway, site.kill_driver, lambda: site.kill_python_worker(executors), lose_worker]
    site.play([site.come, site.come, site.come, site.go, site.go, *kills])
    assert any(cluster.started()), "executors are the workers'"
    daemon.kill(signal.SIGTERM)
    wait_for(lambda: not any(cluster.started()))
