"""A stream's rows from files and log: each once, where options have it begin, and what is said of those that are gone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from gateway.tests.pasts import ORIGIN, plain_records, stream_of
from gateway.tests.published import (
    COMPACTED,
    PLAIN,
    ROW,
    Written,
    numbers,
    rows_of,
    two_days,
)
from gateway.tests.storage.history.test_dating import DAY, Machine, Site
from pyspark_skerry.options import reading_of
from pyspark_skerry.readers import LiveReader, PastReader
from pyspark_skerry.reading import LostError
from skerry.storage.history import snapshot
from skerry.storage.state import DataError

MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    made = two_days(tmp_path_factory.mktemp("data"))
    yield made
    made.close()


def streamed(written: Written, upto: int | None = None, **options: str) -> list[int]:
    """Numbers of the rows of a stream's first batch, read in this process; up to one of the log's."""
    given = {name.lower(): value for name, value in options.items()}
    reading = reading_of({"data": str(written.data), "stream": "sensors", **given}, ROW)
    reader = LiveReader(reading)
    start = reader.initialOffset()
    limit = ReadMaxRows(upto - start["row"]) if upto is not None else ReadAllAvailable()
    parts = reader.partitions(start, reader.latestOffset(start, limit))
    return sorted(row for part in parts for batch in reader.read(part) for row in batch["row"].to_pylist())


def test_only_needed_rows_reach_spark(written: Written) -> None:
    options = {"data": str(written.data), "stream": "2", "columns": "row,nodeid", "motes": "2"}
    schema = StructType().add("row", "long").add("nodeid", "long").add("stream", "long")
    reader = PastReader(reading_of(options, schema))
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    records = written.log.tail(written.log.rows)
    assert len(rows) == int(((records["stream"] == 2) & (records["node"] == 2)).sum())
    assert {(row["stream"], row["nodeid"]) for row in rows} == {(2, 2)}


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


def test_rows_that_are_gone_are_told_of(growing: Written) -> None:
    # Ten minutes of the first day, and some of the second.
    growing.append(plain_records(PLAIN, range(160), [1]))
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


def test_files_tell_their_columns_where_nobody_remembers_the_streams(
    written: Written, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(written.data, tmp_path / "data"))
    names = ["row", "root", "epoch", "AVG(temp)"]
    there = [row for row in rows_of(data, names, stream="stream-3") if row[0] < COMPACTED]
    (data / "published" / "streams.json").unlink()
    assert rows_of(data, names, stream="stream-3") == there
    assert {epoch for _, epoch in rows_of(data, ["row", "epoch"], stream="sensors")} == {None}


def test_files_that_never_take_their_places_are_told_of(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(shutil.copytree(written.data, tmp_path / "data"))
    manifest = json.loads((data / "history" / "manifest.json").read_text())
    (data / "history" / "manifest.json").write_text(json.dumps({**manifest, "moving": ["sensors/x.parquet"]}))
    monkeypatch.setattr(snapshot, "_WAIT_S", 0.001)
    with pytest.raises(DataError, match=r"history: files are being dated again, .* start the gateway"):
        numbers(data)
