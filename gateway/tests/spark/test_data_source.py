"""The data source ``skerry``: a user's own Spark job beside a gateway reads what DuckDB reads of the same directory."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from gateway.tests.pasts import ORIGIN, ended, plain_records, plan_of, shuffled, stream_of
from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, ask, queue_rows
from gateway.tests.published import Written
from gateway.tests.spark.sessions import users_session
from gateway.tests.storage.history.test_dating import DAY, Machine, Site
from pyspark_skerry.columns import spark_schema
from pyspark_skerry.options import reading_of
from pyspark_skerry.readers import LiveReader, PastReader
from pyspark_skerry.reading import LostError
from skerry.expressions.aggregate_states import initial, merge_cells
from skerry.planner.model.plans import Feed
from skerry.service.queries import UserQuery
from skerry.storage.log.record import Kind, Records
from skerry.storage.state import DataError
from skerry.streams.stream import Stream
from skerry_protocol.packets import Aggregate

pytestmark = pytest.mark.spark

PLAIN = stream_of(1, "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 5 s")
NEXT = stream_of(2, "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 10 s", since_ms=900_000)
AVERAGE = stream_of(3, "SELECT AVG(temp), COUNT(*) FROM sensors SAMPLE PERIOD 30 s")
STREAMS = [ended(PLAIN, 900_000), NEXT, AVERAGE]
COMPACTED = 800
ROW = StructType().add("row", "long")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = users_session(tmp_path_factory.mktemp("user"))
    yield session
    session.stop()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """Two days, of which all is compacted but the last rows; of some epochs two revisions."""
    made = Written(tmp_path_factory.mktemp("data"), STREAMS)
    revised = plain_records(AVERAGE, range(3, 6), [0], seed=9)
    revised["revision"], revised["kind"] = 1, Kind.REVISED
    averages = plain_records(AVERAGE, range(50), [0])
    averages["kind"], averages["motes"] = Kind.TOLD, 3
    parts = plain_records(AVERAGE, range(50), [1])
    parts["kind"] = Kind.PART
    rows = [
        plain_records(PLAIN, range(185), [1, 2, 3]), plain_records(NEXT, range(85, 180), [1, 2, 3]), averages, revised, parts,
    ]  # fmt: skip
    made.append(shuffled(rows))
    made.compact(COMPACTED)
    yield made
    made.close()


def rows_of(written: Written | Path, names: Sequence[str], **options: str) -> list[tuple[Any, ...]]:
    """All rows that there are, read in this process."""
    data = written.data if isinstance(written, Written) else written
    given = {"data": str(data)} | {name.lower(): value for name, value in options.items()}
    fields = reading_of(given, None).schema()
    schema = spark_schema(pa.schema([fields.field(name) for name in names]))
    reader = PastReader(reading_of(given, schema))
    return [
        tuple(row[name] for name in names)
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


def numbers(written: Written | Path, **options: str) -> list[int]:
    """Of all rows of sensors."""
    return [row for (row,) in rows_of(written, ["row"], stream="sensors", **options)]


def read(spark: SparkSession, written: Written, stream: str = "sensors", **options: object) -> DataFrame:
    return spark.read.format("skerry").options(data=str(written.data), stream=stream, **options).load()  # type: ignore[arg-type]


def whole(written: Written, directory: Path, stream: str) -> duckdb.DuckDBPyRelation:
    """What the files are once all is compacted, for DuckDB."""
    copy = directory / "copy"
    if not copy.exists():
        shutil.copytree(written.data, copy)
        made = Written(copy, written.streams)
        made.compact()
        made.close()
    return duckdb.sql(f"SELECT * FROM '{copy}/history/{stream}/*.parquet' ORDER BY row")


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    """Rows of Spark's or DuckDB's."""
    return sorted((tuple(map(in_utc, row)) for row in rows), key=lambda row: row[0])


def in_utc(value: object) -> object:
    """Times in one zone; what Spark writes into files bears none."""
    if not isinstance(value, datetime):
        return value
    return value.astimezone(UTC) if value.tzinfo is not None else value.replace(tzinfo=UTC)


@pytest.mark.parametrize("stream", ["sensors", "stream-3"])
def test_rows_are_those_that_duckdb_reads(
    spark: SparkSession, written: Written, tmp_path: Path, stream: str
) -> None:
    there = whole(written, tmp_path, stream)
    names = there.columns
    got = read(spark, written, stream)
    assert set(got.columns) == {*names, "root", "epoch"}
    expected = there.fetchall()
    assert len(expected) > 40
    assert plain(got.select(*[F.col(f"`{name}`") for name in names]).collect()) == plain(expected)
    # Some of them are in the log alone.
    assert max(row[0] for row in expected) >= COMPACTED


def test_columns_have_types_and_units(spark: SparkSession, written: Written) -> None:
    got = read(spark, written)
    assert got.columns[:9] == [
        "row", "root", "session", "stream", "nodeid", "epoch", "time", "arrival", "network_ms",
    ]  # fmt: skip
    types = dict(got.dtypes)
    assert [types[name] for name in ("row", "time", "temp", "light")] == [
        "bigint",
        "timestamp",
        "double",
        "bigint",
    ]
    assert got.schema["temp"].metadata == {"unit": "degC", "digits": 2}
    row = got.first()
    assert row is not None
    periods = {stream.number: stream.mote_query.period_ms for stream in STREAMS}
    assert row["epoch"] * periods[row["stream"]] == row["network_ms"]
    assert got.filter("temp IS NULL").count() > 0


# ---- what is asked of rows ----

MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
DAYS = [f"sensors/{MIDNIGHT - timedelta(days=1):%Y-%m-%d}.parquet", f"sensors/{MIDNIGHT:%Y-%m-%d}.parquet"]


@pytest.fixture
def first_day_damaged(written: Written, tmp_path: Path) -> Path:
    """Who opens the file of the first day is told so."""
    data = tmp_path / "data"
    shutil.copytree(written.data, data)
    (data / "history" / DAYS[0]).write_bytes(b"PAR1 and nothing else")
    return data


def test_a_frame_can_be_used_in_several_ways(
    spark: SparkSession, written: Written, first_day_damaged: Path
) -> None:
    """What one use asks of it is not asked of others, whatever Spark is set to."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    rows = read(spark, written, columns="nodeid,row,time")
    some = [rows.filter(f"nodeid = {mote}") for mote in (1, 2)]
    counts = [frame.count() for frame in some]
    assert rows.count() > sum(counts)
    assert some[0].union(some[1]).count() == sum(counts)
    late = rows.filter("time >= '2026-11-19 19:00:00'").count()
    assert late == rows.filter(F.col("time") >= F.lit(MIDNIGHT)).count(), "it is the session's zone"
    with pytest.raises(Exception, match=f"{DAYS[0]}: .*put it back from a copy"):
        spark.read.format("skerry").options(data=str(first_day_damaged), stream="sensors").load().collect()


def test_files_without_such_rows_are_not_opened(
    spark: SparkSession, written: Written, first_day_damaged: Path
) -> None:
    assert sorted(name for name in written.history.manifest.files if name.startswith("sensors")) == DAYS
    options = {"stream": "sensors", "startTime": f"{MIDNIGHT:%Y-%m-%dT%H:%M:%S}", "motes": "1, 3"}
    columns = "time,temp, nodeid"
    rows = spark.read.format("skerry").options(data=str(first_day_damaged), columns=columns, **options).load()
    assert rows.columns == ["time", "temp", "nodeid"]
    all_rows = read(spark, written).select("time", "temp", "nodeid")
    expected = [r for r in all_rows.collect() if r.nodeid != 2 and r.time.astimezone(UTC) >= MIDNIGHT]
    assert sorted(map(str, rows.collect())) == sorted(map(str, expected))
    exact = spark.read.format("skerry").options(data=str(first_day_damaged), **options)
    [(least,)] = exact.schema("temp decimal(8, 2)").load().agg(F.min("temp")).collect()
    assert float(least) == min(row.temp for row in expected if row.temp is not None)
    until = {**options, "endTime": f"{MIDNIGHT + timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"}
    early = spark.read.format("skerry").options(data=str(written.data), **until).load().collect()
    assert {row.time.astimezone(UTC) < MIDNIGHT + timedelta(minutes=5) for row in early} == {True}


def test_only_needed_rows_reach_spark(written: Written) -> None:
    options = {"data": str(written.data), "stream": "2", "columns": "row,nodeid", "motes": "2"}
    schema = StructType().add("row", "long").add("nodeid", "long").add("stream", "long")
    reader = PastReader(reading_of(options, schema))
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    records = written.log.tail(written.log.rows)
    assert len(rows) == int(((records["stream"] == 2) & (records["node"] == 2)).sum())
    assert {(row["stream"], row["nodeid"]) for row in rows} == {(2, 2)}


# ---- as rows come ----


def live(spark: SparkSession, data: Path, stream: str = "sensors", **options: str) -> DataFrame:
    return spark.readStream.format("skerry").options(data=str(data), stream=stream, **options).load()


class Sink:
    """What a streaming query brings, until it has all there is."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark, self._directory = spark, directory

    def take(self, rows: DataFrame) -> list[int]:
        """Numbers of the rows that are new."""
        path = self._directory / "rows"
        before = self._read(path)
        query = (
            rows.select("row")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self._directory / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(path))
        )
        query.awaitTermination()
        got = self._read(path)
        assert len(got) == len(set(got)), "a row came twice"
        return sorted(set(got) - set(before))

    def _read(self, path: Path) -> list[int]:
        return [row for (row,) in self._spark.read.parquet(str(path)).collect()] if path.exists() else []


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Written]:
    """Rows of one mote and one stream come."""
    made = Written(tmp_path / "data", [PLAIN], segment_rows=20)
    yield made
    made.close()


def test_a_stream_begins_in_the_past_and_goes_on_from_a_checkpoint(
    spark: SparkSession, growing: Written, tmp_path: Path
) -> None:
    sink = Sink(spark, tmp_path)
    growing.append(plain_records(PLAIN, range(100), [1]))
    growing.compact(70)
    rows = live(spark, growing.data, maxRowsPerTrigger="45")
    assert sink.take(rows) == list(range(100))
    growing.append(plain_records(PLAIN, range(100, 130), [1]))
    # The rows are in the files meanwhile, and the log has others alone.
    growing.compact()
    growing.keep(log_bytes=0)
    assert growing.log.first == 100
    growing.append(plain_records(PLAIN, range(130, 150), [1]))
    assert sink.take(rows) == list(range(100, 150))
    assert sink.take(rows) == []


def streamed(written: Written, upto: int | None = None, **options: str) -> list[int]:
    """Numbers of the rows of a stream's first batch, read in this process; up to one of the log's."""
    given = {name.lower(): value for name, value in options.items()}
    reading = reading_of({"data": str(written.data), "stream": "sensors", **given}, ROW)
    reader = LiveReader(reading)
    start = reader.initialOffset()
    limit = ReadMaxRows(upto - start["row"]) if upto is not None else ReadAllAvailable()
    parts = reader.partitions(start, reader.latestOffset(start, limit))
    return sorted(row for part in parts for batch in reader.read(part) for row in batch["row"].to_pylist())


def test_a_stream_begins_where_it_is_told(growing: Written) -> None:
    growing.append(plain_records(PLAIN, range(200), [1]))
    growing.compact(150)
    moment = datetime.fromtimestamp(ORIGIN / 1e6 + 140 * 5, UTC)
    assert streamed(growing) == streamed(growing, startRow="earliest") == list(range(200))
    assert streamed(growing, 180, startRow="160") == list(range(160, 180))
    assert streamed(growing, startTime=moment.isoformat()) == list(range(140, 200))
    assert streamed(growing, startRow="latest") == []


def test_rows_come_once_whatever_is_compacted_meanwhile(growing: Written) -> None:
    """Tasks share out what the log has, which has it no longer when they read."""
    for first in range(0, 200, 20):
        growing.append(plain_records(PLAIN, range(first, first + 20), [1]))
    growing.compact(90)
    reader = PastReader(reading_of({"data": str(growing.data), "stream": "sensors"}, ROW))
    parts = reader.partitions()
    growing.compact()
    growing.keep(log_bytes=0)
    assert growing.log.first > 90
    got = [row for part in parts for batch in reader.read(part) for row in batch["row"].to_pylist()]
    assert sorted(got) == list(range(200))


def test_rows_that_are_gone_are_told_of(spark: SparkSession, growing: Written, tmp_path: Path) -> None:
    # Ten minutes of the first day, and some of the second.
    growing.append(plain_records(PLAIN, range(40), [1]))
    sink, rows = Sink(spark, tmp_path / "first"), live(spark, growing.data)
    assert len(sink.take(rows)) == 40
    growing.append(plain_records(PLAIN, range(40, 160), [1]))
    growing.compact()
    growing.keep(MIDNIGHT.timestamp() + 0.9 * 86_400, history_days=0.5, log_bytes=0)
    assert growing.history.manifest.gone == "2026-11-19"
    said = r"of the rows from {} on some are gone.*the first row that is still there is row 120\."
    for options, start in (
        ({"startRow": "50"}, "row 50"),
        ({"startTime": "2026-11-19T23:55"}, "2026-11-19T23:55:00Z"),
    ):
        with pytest.raises(LostError, match=said.format(start)):
            streamed(growing, **options)
        assert streamed(growing, failOnDataLoss="false", **options) == list(range(120, 160))
        with pytest.raises(LostError, match=said.format(start)):
            numbers(growing, **options)
    # Who does not say where to begin has all that there is.
    assert streamed(growing) == streamed(growing, startRow="120") == list(range(120, 160))
    with pytest.raises(StreamingQueryException, match=said.format("row 40")):
        sink.take(rows)
    assert sink.take(live(spark, growing.data, failOnDataLoss="false")) == list(range(120, 160))


def test_rows_are_dated_as_the_gateway_has_found_out(tmp_path: Path) -> None:
    """The clock was set when five rows had come: they are in the log as they were dated, in files they go to another day."""
    machine = Machine(wrong_s=-3 * DAY)
    stream = stream_of(1, "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 60 s")
    made = Written(tmp_path / "data", [stream])
    made.close()
    site = Site(tmp_path / "data", machine)
    site.sample(5)
    site.history.compact(site.log.path, 3, [stream])
    planned = PastReader(reading_of({"data": str(site.data), "stream": "sensors"}, ROW))
    parts = planned.partitions()
    machine.wrong_s = 0.0
    site.sample(2)
    # Files wait for their turn.
    moved = [(row, time) for row, time in rows_of(site.data, ["row", "time"], stream="sensors") if row >= 3]
    site.history.compact(site.log.path, 3, [stream])
    got = rows_of(site.data, ["row", "time"], stream="sensors")
    assert sorted(got)[3:] == sorted(moved)
    first = sorted(got)[0][1].timestamp()
    assert [time.timestamp() - first for _, time in sorted(got)] == pytest.approx(
        [60 * i for i in range(7)], abs=1
    )
    with pytest.raises(DataError, match="files have been dated again while they were read"):
        _ = [batch for part in parts for batch in planned.read(part)]
    site.log.close()


# ---- a user's query ----

QUERIES = {
    "1": ("SELECT nodeid, temp * 2 AS twice, light FROM sensors WHERE temp > 20 SAMPLE PERIOD 10 s", PLAIN),
    "2": ("SELECT AVG(temp) AS mean, COUNT(*) AS rows FROM sensors SAMPLE PERIOD 30 s", AVERAGE),
    "3": ("SELECT AVG(temp, 5 min) FROM sensors SAMPLE PERIOD 5 s", PLAIN),
    "4": ("SELECT nodeid, temp FROM sensors HISTORY 1 day SAMPLE PERIOD 5 s", PLAIN),
}


@pytest.fixture
def asked(growing: Written) -> Written:
    """Four users ask: of a hundred rows the first twenty were there before."""
    growing.streams += [AVERAGE]
    entries = {}
    for name, (sql, stream) in QUERIES.items():
        plan = plan_of(sql)
        feed = Feed("ada", stream.query, plan.period_ms, stream.mote_query.period_ms, 0)
        query = UserQuery(name, "ada", sql, plan, 0.0, 20, feeds={stream.number: feed})
        entries[name] = json.loads(query.text())
    growing.remember(entries)
    revised = plain_records(AVERAGE, range(6), [0], seed=9)
    revised["revision"], revised["kind"] = 1, Kind.REVISED
    averages = plain_records(AVERAGE, range(10), [0], seed=4)
    averages["kind"], averages["motes"] = Kind.TOLD, 2
    rows = np.concatenate([plain_records(PLAIN, range(42), [1, 2]), averages, revised])
    for first in range(0, 100, 20):
        growing.append(rows[first : first + 20])
    return growing


def test_a_query_has_the_rows_and_columns_of_its_user(asked: Written, tmp_path: Path) -> None:
    whole(asked, tmp_path, "sensors")
    files = f"{tmp_path}/copy/history"
    expected = duckdb.sql(f"""
        SELECT row, nodeid, 2 * temp AS twice, light, time FROM '{files}/sensors/*.parquet'
        WHERE row >= 20 AND temp > 20 AND network_ms % 10000 = 0 ORDER BY row
    """)
    reading = reading_of({"data": str(asked.data), "query": "1"}, None)
    assert reading.schema().names == [
        "row", "root", "session", "stream", "epoch", "time", "arrival", "nodeid", "twice", "light",
    ]  # fmt: skip
    assert reading.schema().field("twice").metadata == {b"unit": b"degC", b"digits": b"2"}
    got = rows_of(asked, expected.columns, query="1")
    assert len(got) > 5
    assert plain(got) == plain(expected.fetchall())
    expected = duckdb.sql(f"""
        SELECT row, "AVG(temp)" AS mean, "COUNT(*)" AS rows, motes, revision
        FROM '{files}/stream-3/*.parquet' WHERE revision = 0 ORDER BY row
    """)
    got = rows_of(asked, expected.columns, query="2")
    assert len(got) == 10, "it does not ask for revisions"
    assert plain(got) == plain(expected.fetchall())
    assert rows_of(asked, ["row"], query="1", startRow="60", motes="1") == [
        (row,) for row, mote in rows_of(asked, ["row", "nodeid"], query="1") if row >= 60 and mote == 1
    ]


def test_a_query_reaches_back_as_far_as_its_feed(asked: Written) -> None:
    there = [row for (row,) in rows_of(asked, ["row"], query="1")]
    asked.compact()
    asked.keep(log_bytes=10_000)
    first = asked.log.first
    assert 20 < first < 80
    left = [row for row in there if row >= first]
    assert [row for (row,) in rows_of(asked, ["row"], query="1")] == left
    said = f"from row 20 on some are gone.*the first row that is still there is row {left[0]}"
    with pytest.raises(LostError, match=said):
        rows_of(asked, ["row"], query="1", startRow="20")
    assert len(rows_of(asked, ["row"], query="1", startRow="20", failOnDataLoss="false")) == len(left)


def test_finished_values_of_summaries(spark: SparkSession, tmp_path: Path) -> None:
    """Of what three motes read in each of ten epochs."""
    sql = "SELECT MEDIAN(temp) AS middle, TOP(2, temp) AS warmest, MAX(temp) - MIN(temp) AS spread FROM sensors SAMPLE PERIOD 30 s"
    plan, stream = plan_of(sql), stream_of(1, sql)
    made = Written(tmp_path / "data", [stream])
    feed = Feed("ada", stream.query, plan.period_ms, stream.mote_query.period_ms, 0)
    query = UserQuery("1", "ada", sql, plan, 0.0, 0, feeds={1: feed})
    made.remember({"1": json.loads(query.text())})
    readings = np.random.default_rng(3).integers(1500, 2500, (10, 3))
    rows = plain_records(stream, range(10), [0], nulls=0)
    rows["kind"], rows["motes"] = Kind.TOLD, 3
    for record, temps in zip(rows, readings.tolist(), strict=True):
        place = 0
        for column in stream.mote_query.columns:
            if column.aggregate in (Aggregate.MIN, Aggregate.MAX):
                cells = [(3, min(temps) if column.aggregate is Aggregate.MIN else max(temps))]
            elif not column.is_field:
                continue
            else:
                states = [
                    initial(column.aggregate, column.cells, t, mote + 1) for mote, t in enumerate(temps)
                ]
                cells = reduce(partial(merge_cells, column.aggregate), states)
            place = stream.mote_query.columns.index(column)
            for i, (count, value) in enumerate(cells):
                record["count"][place + i], record["value"][place + i] = count, value or 0
    made.append(rows)
    made.close()
    got = spark.read.format("skerry").options(data=str(made.data), query="1").load()
    assert got.columns[-3:] == ["middle", "warmest", "spread"]
    for row, temps in zip(got.orderBy("row").collect(), readings.tolist(), strict=True):
        warmest = sorted(((-temp, mote) for mote, temp in enumerate(temps, 1)))[:2]
        assert row.motes == 3
        assert row.middle == pytest.approx(sorted(temps)[1] / 100, abs=0.005)
        assert [(each.nodeid, each.value) for each in row.warmest] == [(m, -t / 100) for t, m in warmest]
        assert row.spread == pytest.approx((max(temps) - min(temps)) / 100)


@pytest.mark.slow
def test_rows_are_those_of_the_feed_while_the_gateway_runs(peer: RootPeer, daemon: Daemon) -> None:
    daemon.start()
    rows, query, program = ask(peer, daemon)
    feed, got = iter(rows), []
    for first in (60, 64):
        queue_rows(peer, query, range(first, first + 4), program)
        got += [next(feed) for _ in range(12)]
        read = rows_of(daemon.data, ["row", "nodeid", "temp"], query=rows.id)
        assert [values for _, *values in sorted(read)] == [[row["nodeid"], row["temp"]] for row in got]
        assert sorted(rows_of(daemon.data, ["row", "nodeid", "temp"], stream="sensors")) == sorted(read)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("3", r"query 3 \(SELECT AVG.*\): its rows are windows, which the gateway makes: read one of its"),
        ("4", r"query 4 \(SELECT .*\): its rows begin in the past"),
        ("5", r"has no query 5: it has 1 \(SELECT nodeid, temp \* 2 AS twice.*\); 2 \(.*\); 3"),
    ],
)
def test_queries_that_cannot_be_read_are_named(asked: Written, query: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        rows_of(asked, ["row"], query=query)


# ---- what cannot be read ----


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "options stream and query are missing: give stream 'sensors'"),
        (
            {"stream": "sensors", "query": "1"},
            r"options stream \('sensors'\) and query \('1'\) are both given",
        ),
        ({"query": "9"}, "has no query 9: it has none"),
        ({"stream": "sensor"}, r"has no stream sensor: it has sensors \(a row for each.*stream-3 \(SUM"),
        ({"stream": "7"}, "has no stream 7: .*by their numbers 1, 2, 3"),
        ({"stream": "sensors", "startRow": "-1"}, "option startRow is '-1': give the number of a row"),
        ({"stream": "sensors", "startRow": "5000"}, "option startRow is 5000, and .* end before row 943"),
        ({"stream": "sensors", "startTime": "now"}, "option startTime is 'now': give UTC as 2026-11-21"),
        (
            {"stream": "sensors", "startTime": "2026-11-20", "endTime": "2026-11-19"},
            "option endTime is '2026-11-19', which is not after startTime '2026-11-20'",
        ),
        ({"stream": "sensors", "motes": "1;2"}, "option motes is '1;2', and '1;2' is no mote"),
        ({"stream": "stream-3", "motes": "1"}, "option motes is '1', and rows of stream stream-3 are of no mote"),
        ({"stream": "sensors", "columns": "temp,hum"}, "option columns has 'hum': there are row, root"),
        ({"stream": "sensors", "failOnDataLoss": "no"}, "option failOnDataLoss is 'no': give true or false"),
        ({"stream": "sensors", "maxRowsPerTrigger": "0"}, "option maxRowsPerTrigger is '0': give a number"),
        ({"stream": "sensors", "starttimes": "1"}, r"option starttimes \('1'\).*did you mean startTime\?"),
    ],
)  # fmt: skip
def test_options_that_are_wrong_are_named(written: Written, options: dict[str, str], said: str) -> None:
    given = {name.lower(): value for name, value in options.items()}
    with pytest.raises(DataError, match=said):
        LiveReader(reading_of({"data": str(written.data), **given}, None)).initialOffset()


def test_spark_shows_what_was_said(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "pictures").touch()
    for data, said in (
        (tmp_path / "nowhere", f"data directory {tmp_path}/nowhere: there is no such directory"),
        (tmp_path, f"data directory {tmp_path}: no gateway has written it: it has no log, but .*pictures"),
    ):
        with pytest.raises(AnalysisException, match=said):
            live(spark, data)


def test_a_directory_that_is_damaged_is_named(written: Written, tmp_path: Path) -> None:
    for name in ("history/manifest.json", "gateway.json", "clock.json"):
        shutil.copytree(written.data, tmp_path / "data", dirs_exist_ok=True)
        (tmp_path / "data" / name).write_text("{")
        with pytest.raises(DataError, match=f"data/{name} is not as the gateway wrote it"):
            numbers(tmp_path / "data")
        (tmp_path / "data" / name).unlink()


def test_nothing_is_written_and_the_gateway_may_run(written: Written) -> None:
    def files() -> dict[Path, tuple[int, int]]:
        found = [path for path in written.data.rglob("*") if path.is_file()]
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in found}

    before = files()
    assert len(numbers(written)) > 500
    assert files() == before


# ---- what docs/spark.md shows ----

TEXT = (Path(__file__).parents[3] / "docs" / "spark.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
#: Files that it names, from where it is run.
NAMED = re.compile(r'(, |=|: )"((?:data|means|pairs|odd)(?:-progress)?)"')
INSIDE = stream_of(1, "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 5 s")
OUTSIDE = stream_of(2, "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 5 s", session=(1 << 16) + 1)


def test_no_example_is_left_out() -> None:
    assert len(EXAMPLES) == 4


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two roots, whose rows come in turn over twenty minutes and a midnight; light warms, but for a few."""
    root = tmp_path_factory.mktemp("docs")
    made = Written(root / "data", [INSIDE, OUTSIDE])
    for first in range(0, 240, 12):
        parts = [of_root(stream, range(first, first + 12)) for stream in (INSIDE, OUTSIDE)]
        made.append(np.concatenate(parts))
        if first == 180:
            made.compact()
    made.close()
    copy = Written(Path(shutil.copytree(root / "data", root / "copy")), [INSIDE, OUTSIDE])
    copy.compact()
    copy.close()
    return root


def of_root(stream: Stream, epochs: Sequence[int]) -> Records:
    """Two motes' rows, of the same times for both roots."""
    rows = plain_records(stream, epochs, [1, 2], seed=stream.number * 1000 + epochs[0])
    rows["sample"] = ORIGIN + rows["epoch"].astype(np.int64) * 5_000_000
    rows["arrival"] = rows["sample"] + 100_000
    columns = [column.name for column in stream.mote_query.columns]
    temp, light = columns.index("temp"), columns.index("light")
    odd = rows["epoch"] % 97 == 5
    rows["value"][:, temp] = 1500 + rows["value"][:, light] % 1000 + 900 * odd
    rows["nulls"] &= ~np.uint16(1 << temp)
    return rows


@pytest.fixture
def here(spark: SparkSession, shown: Path, capfd: pytest.CaptureFixture[str]) -> Callable[[int], str]:
    """Runs an example as if it were begun beside the data directory."""

    def run(number: int) -> str:
        code = NAMED.sub(lambda found: f'{found[1]}"{shown / found[2]}"', EXAMPLES[number])
        assert str(shown / "data") in code
        exec(compile(code, f"docs/spark.md, example {number}", "exec"), {"__name__": "__main__"})
        return capfd.readouterr().out

    assert spark is SparkSession.builder.getOrCreate()
    return run


def answers(shown: Path, sql: str) -> list[tuple[Any, ...]]:
    found = duckdb.sql(sql.format(rows=f"'{shown}/copy/history/sensors/*.parquet'")).fetchall()
    return sorted(tuple(map(in_utc, row)) for row in found)


def test_rows_are_counted(here: Callable[[int], str]) -> None:
    assert re.search(r"1\| +480\|\n\| +2\| +480", here(0))


def test_windows_with_a_watermark(here: Callable[[int], str], shown: Path) -> None:
    here(1)
    got = answers(shown, f"SELECT \"window\".start, nodeid, mean, readings FROM '{shown}/means/*.parquet'")
    expected = """
        SELECT time_bucket(INTERVAL 5 minute, time) AS start, nodeid, avg(temp), count(temp) FROM {rows}
        WHERE time < (SELECT time_bucket(INTERVAL 5 minute, max(time) - INTERVAL 1 minute) FROM {rows})
        GROUP BY start, nodeid
    """
    there = answers(shown, expected)
    assert len(there) == 6
    assert [row[:2] for row in got] == [row[:2] for row in there]
    assert [row[2:] for row in got] == [(pytest.approx(mean), count) for *_, mean, count in there]


def test_two_roots_joined(here: Callable[[int], str], shown: Path) -> None:
    here(2)
    got = answers(
        shown, f"SELECT inner_mote, inner_time, outer_mote, outer_time FROM '{shown}/pairs/*.parquet'"
    )
    expected = """
        SELECT i.nodeid, i.time, o.nodeid, o.time FROM {rows} i JOIN {rows} o
        ON i.nodeid = o.nodeid AND i.session = 1 AND o.session > 65536 AND o.time >= i.time AND o.time < i.time + INTERVAL 5 second
    """
    assert len(got) == 240 * 2
    assert got == answers(shown, expected)


def test_a_model_scored_on_a_stream(here: Callable[[int], str], shown: Path) -> None:
    here(3)
    got = answers(shown, f"SELECT row FROM '{shown}/odd/*.parquet'")
    past = "(SELECT * FROM {rows} WHERE time < TIMESTAMPTZ '2026-11-20 00:00:00+00')"
    expected = f"""
        WITH line AS (SELECT regr_slope(temp, light) AS a, regr_intercept(temp, light) AS b FROM {past}),
        spread AS (SELECT stddev_pop(temp - (a * light + b)) AS s FROM {past}, line WHERE light IS NOT NULL)
        SELECT row FROM {{rows}}, line, spread
        WHERE time >= TIMESTAMPTZ '2026-11-20 00:00:00+00' AND abs(temp - (a * light + b)) / s > 3
    """
    assert 0 < len(got) < 30
    assert got == answers(shown, expected)
