"""The data source ``skerry``: a user's own Spark job beside a gateway reads what DuckDB reads of the same directory."""

from __future__ import annotations

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
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway.tests.pasts import ORIGIN, plain_records, plan_of, stream_of
from gateway.tests.published import (
    COMPACTED,
    PLAIN,
    STREAMS,
    Written,
    in_utc,
    plain,
    two_days,
    whole,
)
from gateway.tests.spark.sessions import users_session
from skerry.expressions.aggregate_states import initial, merge_cells
from skerry.planner.model.plans import Feed
from skerry.service.queries import UserQuery
from skerry.spark.late_workers import LateWorkers
from skerry.storage.history.manifest import day_of
from skerry.storage.log.record import Kind, Records
from skerry.streams.stream import Stream
from skerry_protocol.codes import Aggregate

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = users_session(tmp_path_factory.mktemp("user"))
    yield session
    session.stop()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    made = two_days(tmp_path_factory.mktemp("data"))
    yield made
    made.close()


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Written]:
    """Rows of one mote and one stream come."""
    made = Written(tmp_path / "data", [PLAIN], segment_rows=20)
    yield made
    made.close()


def read(spark: SparkSession, written: Written, stream: str = "sensors", **options: object) -> DataFrame:
    return spark.read.format("skerry").options(data=str(written.data), stream=stream, **options).load()  # type: ignore[arg-type]


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
    """Who opens a file of the first day is told so."""
    data = tmp_path / "data"
    shutil.copytree(written.data, data)
    for file in (data / "history" / "sensors").glob(f"{MIDNIGHT - timedelta(days=1):%Y-%m-%d}*"):
        file.write_bytes(b"PAR1 and nothing else")
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
    with pytest.raises(
        Exception, match=rf"{DAYS[0].removesuffix('.parquet')}(\.\d)?\.parquet: .*put it back from a copy"
    ):
        spark.read.format("skerry").options(data=str(first_day_damaged), stream="sensors").load().collect()


def test_files_without_such_rows_are_not_opened(
    spark: SparkSession, written: Written, first_day_damaged: Path
) -> None:
    files = list(written.history.manifest.of("sensors"))
    assert len(files) > len(DAYS)
    assert {f"sensors/{day_of(name)}.parquet" for name in files} == set(DAYS)
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


def test_finished_values_of_summaries(spark: SparkSession, tmp_path: Path) -> None:
    """Of what three motes read in each of ten epochs."""
    sql = "SELECT MEDIAN(temp) AS middle, TOP(2, temp) AS warmest, MAX(temp) - MIN(temp) AS spread FROM sensors SAMPLE PERIOD 30 s"
    plan, stream = plan_of(sql), stream_of(1, sql)
    made = Written(tmp_path / "data", [stream])
    feed = Feed("ada", stream.query, plan.period_ms, stream.mote_query.period_ms, 0)
    query = UserQuery("1", "ada", sql, plan, 0.0, 0, feeds={1: feed})
    made.remember([query])
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


# ---- as rows come ----


def live(spark: SparkSession, data: Path, stream: str = "sensors", **options: str) -> DataFrame:
    return spark.readStream.format("skerry").options(data=str(data), stream=stream, **options).load()


def past_late_workers(run: Callable[[], object]) -> None:
    """To the end of streaming queries, which go on from their checkpoints where Spark waited in vain for its Python."""
    late = LateWorkers()
    while True:
        try:
            run()
            return
        except StreamingQueryException as error:
            if not late.forgives(error):
                raise


class Sink:
    """What a streaming query brings, until it has all there is."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def take(self, rows: DataFrame) -> list[int]:
        """Numbers of the rows that are new."""
        path = self._directory / "rows"
        before = self._read(path)
        writer = (
            rows.select("row")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self._directory / "checkpoint"))
            .trigger(availableNow=True)
        )
        past_late_workers(lambda: writer.start(str(path)).awaitTermination())
        got = self._read(path)
        assert len(got) == len(set(got)), "a row came twice"
        return sorted(set(got) - set(before))

    def _read(self, path: Path) -> list[int]:
        parts = pq.read_table(path).column("row") if path.exists() else pa.chunked_array([[]])
        found: list[int] = parts.to_pylist()
        return found


def test_a_stream_begins_in_the_past_and_goes_on_from_a_checkpoint(
    spark: SparkSession, growing: Written, tmp_path: Path
) -> None:
    sink = Sink(tmp_path)
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


def test_rows_that_are_gone_are_told_of(spark: SparkSession, growing: Written, tmp_path: Path) -> None:
    # Ten minutes of the first day, and some of the second.
    growing.append(plain_records(PLAIN, range(40), [1]))
    sink, rows = Sink(tmp_path / "first"), live(spark, growing.data)
    assert len(sink.take(rows)) == 40
    growing.append(plain_records(PLAIN, range(40, 160), [1]))
    growing.compact()
    growing.keep(MIDNIGHT.timestamp() + 0.9 * 86_400, history_days=0.5, log_bytes=0)
    assert growing.history.manifest.gone == "2026-11-19"
    with pytest.raises(
        StreamingQueryException, match=r"of the rows from row 40 on some are gone.*is row 120\. Begin there"
    ):
        sink.take(rows)
    assert sink.take(live(spark, growing.data, failOnDataLoss="false")) == list(range(120, 160))


def test_spark_shows_what_was_said(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "pictures").touch()
    for data, said in (
        (tmp_path / "nowhere", f"data directory {tmp_path}/nowhere: there is no such directory"),
        (tmp_path, f"data directory {tmp_path}: no gateway has written it: it has no log, but .*pictures"),
    ):
        with pytest.raises(AnalysisException, match=said):
            live(spark, data)


# ---- what docs/spark.md shows ----
TEXT = (Path(__file__).parents[3] / "docs" / "spark.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
#: Files that it names, from where it is run.
NAMED = re.compile(r'(, |=|: )"((?:data|means|pairs|odd|all)(?:-progress|-south)?)"')
INSIDE = stream_of(1, "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 5 s")
OUTSIDE = stream_of(2, "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 5 s", session=(1 << 16) + 1)


def test_no_example_is_left_out() -> None:
    assert len(EXAMPLES) == 5


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
    south = Written(root / "data-south", [INSIDE])
    south.append(of_root(INSIDE, range(60)))
    south.compact(100)
    south.close()
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
        compiled = compile(code, f"docs/spark.md, example {number}", "exec")
        past_late_workers(lambda: exec(compiled, {"__name__": "__main__"}))
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


def test_several_gateways(here: Callable[[int], str], shown: Path) -> None:
    here(4)
    got = duckdb.sql(f"SELECT gateway, row, nodeid FROM '{shown}/all/*.parquet'").fetchall()
    # Both roots' two motes in the north; one root's in the south.
    assert sorted((gateway, row) for gateway, row, _ in got) == [
        *(("north", row) for row in range(960)),
        *(("south", row) for row in range(120)),
    ]
    assert {node for _, _, node in got} == {1, 2}
