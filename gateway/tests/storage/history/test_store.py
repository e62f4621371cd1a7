"""Compaction: the log as Parquet by stream and day."""

from __future__ import annotations

import json
import os
import shutil
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.tests.pasts import ORIGIN, ended, plain_records, shuffled, stream_of
from skerry.storage.history import compaction
from skerry.storage.history import store as store_module
from skerry.storage.history.damaged_files import DamagedError
from skerry.storage.history.day_files import DAY_US, FILE_ROWS
from skerry.storage.history.history_service import HistoryService
from skerry.storage.history.manifest import Manifest, day_of
from skerry.storage.history.reader import Reader
from skerry.storage.history.retention import KEEP_MAXIMUM
from skerry.storage.history.store import History, Retention
from skerry.storage.log.record import RECORD, Records
from skerry.storage.log.segments import Segments
from skerry.storage.log.stream_log import StreamLog, length, read
from skerry.storage.state import DataError
from skerry.streams.intervals import intervals, sampled_before
from skerry.streams.stream import Stream
from skerry_protocol.attributes import BY_NAME

PLAIN = "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 5 s"


def logged(data: Path, records: Records, batch: int = 500, segment_rows: int = 1000) -> StreamLog:
    log = StreamLog(data, segment_rows)
    for start in range(0, len(records), batch):
        log.append(records[start : start + batch].copy())
    return log


def ask(history: History, sql: str) -> list[Any]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone='UTC'")
        return connection.execute(sql.replace("$", str(history.path))).fetchall()


def test_rows_become_a_file_for_each_day_in_users_units(tmp_path: Path) -> None:
    stream = stream_of(1, PLAIN)
    records = shuffled([plain_records(stream, range(240), [1, 2, 3])])
    log, history = logged(tmp_path, records), History(tmp_path)
    assert history.compact(log.path, log.rows, [stream]) == len(records)
    assert sorted(p.name for p in (history.path / "sensors").iterdir()) == [
        "2026-11-19.parquet",
        "2026-11-20.parquet",
    ]
    rows = ask(
        history,
        "SELECT row, epoch_us(time), epoch_us(arrival), nodeid, network_ms, temp, light, humidity, stream, session"
        " FROM '$/sensors/*.parquet' ORDER BY row",
    )
    columns = [column.name for column in stream.mote_query.columns]
    temp, light = columns.index("temp"), columns.index("light")
    expected = []
    for number, record in enumerate(records):
        known = [not record["nulls"] >> i & 1 for i in range(2)]
        expected.append((
            number, int(record["sample"]), int(record["arrival"]), int(record["node"]), int(record["epoch"]) * 5000,
            int(record["value"][temp]) / 100 if known[temp] else None, int(record["value"][light]) if known[light] else None,
            None, 1, 1,
        ))  # fmt: skip
    assert rows == expected
    [(days,)] = ask(history, "SELECT count(DISTINCT time::DATE) FROM '$/sensors/2026-11-20.parquet'")
    assert days == 1


def test_of_aggregates_the_states_become_values(tmp_path: Path) -> None:
    sql = "SELECT level, AVG(temp), MAX(light), VARIANCE(temp) FROM sensors GROUP BY level SAMPLE PERIOD 30 s"
    stream, again = stream_of(4, sql), stream_of(7, sql, session=2)
    records = np.concatenate([plain_records(s, range(40), [0], seed=s.number) for s in (stream, again)])
    log, history = logged(tmp_path, records), History(tmp_path)
    history.compact(log.path, log.rows, [stream, again])
    assert list(history.manifest.streams) == ["stream-4"], "equal mote queries share a directory"
    names = [column.name for column in stream.mote_query.columns]
    kinds = [column.aggregate.name for column in stream.mote_query.columns]
    average, group = kinds.index("AVG"), kinds.index("GROUP")
    assert len(names) == 5
    rows = ask(
        history,
        'SELECT "AVG(temp)", "SUM(temp)", "COUNT(temp)", level, epoch FROM \'$/stream-4/*.parquet\' ORDER BY row',
    )
    for record, (mean, total, count, level, epoch) in zip(records, rows, strict=True):
        known = record["count"][average] and not record["nulls"] >> average & 1
        value = int(record["value"][average])
        assert count == record["count"][average]
        assert total == (value / 100 if known else None)
        assert mean is None if not known else abs(mean - value / 100 / count) <= 0.5e-5
        assert level == (record["value"][group] if record["count"][group] else None)
        assert epoch == record["epoch"]


def contents(history: History) -> list[Any]:
    found = []
    for directory in sorted({Path(name).parent for name in history.manifest.files}):
        found += ask(
            history,
            f"SELECT '{directory}', row, stream, nodeid, time, network_ms, temp FROM '$/{directory}/*.parquet'",
        )
    return sorted(found, key=lambda row: row[1])


STREAMS = [
    stream_of(1, PLAIN, 0, 2_000_000),
    stream_of(2, "SELECT temp, humidity FROM sensors SAMPLE PERIOD 3 s", 600_000, 2_000_000),
    stream_of(3, "SELECT temp, voltage FROM sensors LIFETIME 24 weeks", 300_000, None),
]


def many() -> Records:
    parts = []
    for stream in STREAMS:
        period = stream.mote_query.period_ms
        parts.append(plain_records(stream, range(0, 2_500_000 // period, 3), [1, 2], seed=stream.number))
    return shuffled(parts)


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    ends=st.lists(st.integers(1, 3000), min_size=1, max_size=5),
    crashes=st.lists(st.integers(0, 12), max_size=4),
    pass_rows=st.integers(100, 2000),
    file_rows=st.sampled_from([150, 700, FILE_ROWS]),
)
def test_a_crash_at_any_moment_loses_and_doubles_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    ends: list[int],
    crashes: list[int],
    pass_rows: int,
    file_rows: int,
) -> None:
    """Each replacement of a file, before or after its rename, may be the last thing that happens."""
    data = tmp_path_factory.mktemp("data")
    records = many()
    log = logged(data, records)
    left = list(crashes)
    patch = pytest.MonkeyPatch()
    patch.setattr(store_module, "PASS_ROWS", pass_rows)
    patch.setattr(compaction, "FILE_ROWS", file_rows)
    real = os.replace
    count = [left.pop() if left else -1]

    def replaced(source: Any, target: Any) -> None:
        if count[0] == 0:
            if len(left) % 2:
                real(source, target)
            count[0] = left.pop() if left else -1
            raise Crash
        count[0] -= 1
        real(source, target)

    patch.setattr(Path, "replace", replaced)
    try:
        history = History(data)
        for end in [*sorted(min(end, log.rows) for end in ends), log.rows]:
            while True:
                try:
                    history.compact(log.path, end, STREAMS)
                    break
                except Crash:
                    history = History(data)
    finally:
        patch.undo()
    found = contents(history)
    assert [row[1] for row in found] == list(range(len(records)))
    assert not list(history.path.rglob("*.new"))
    clean = History(tmp_path_factory.mktemp("clean"))
    clean.compact(log.path, log.rows, STREAMS)
    assert found == contents(clean)
    assert sum(file.rows for file in history.manifest.files.values()) == len(records)
    listed = {p.relative_to(history.path).as_posix() for p in history.path.rglob("*.parquet")}
    assert listed == set(history.manifest.files)


def test_a_day_with_many_rows_has_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass rewrites the last of them, however many there are."""
    monkeypatch.setattr(compaction, "FILE_ROWS", 250)
    stream = stream_of(1, PLAIN)
    records = plain_records(stream, range(200, 600), [1, 2, 3])
    log, history = StreamLog(tmp_path), History(tmp_path)
    seen: list[dict[str, int]] = []
    for start in range(0, 1200, 100):
        log.append(records[start : start + 100].copy())
        history.compact(log.path, log.rows, [stream])
        seen.append({name: (history.path / name).stat().st_mtime_ns for name in history.manifest.files})
    names = [f"sensors/2026-11-20{part}.parquet" for part in ("", ".2", ".3", ".4")]
    assert list(history.manifest.of("sensors")) == names
    assert [history.manifest.files[name].rows for name in names] == [300] * 4
    for before, after in pairwise(seen):
        assert sum(before.get(name) != after[name] for name in after) == 1
    assert ask(history, "SELECT row FROM '$/sensors/*.parquet' ORDER BY row") == [(n,) for n in range(1200)]
    found = Reader(history, log.path, [stream], (), 0).read(250, 950)
    assert found.numbers.tolist() == list(range(250, 950))
    monkeypatch.setattr(history, "retention", Retention(history_days=0.001))
    history.retain(None, log.rows)
    assert not list(history.path.rglob("*.parquet")), "a day's files go together"


def test_one_stream_is_in_charge_at_a_time(tmp_path: Path) -> None:
    records = many()
    log, history = logged(tmp_path, records), History(tmp_path)
    history.compact(log.path, log.rows, STREAMS)
    [(rows, keys)] = ask(
        history, "SELECT count(*), count(DISTINCT (session, nodeid, network_ms)) FROM '$/sensors/*.parquet'"
    )
    assert rows == keys
    by_stream = {
        number: (low, high)
        for number, low, high in ask(
            history,
            "SELECT stream, min(network_ms), max(network_ms) FROM '$/sensors/*.parquet' GROUP BY stream",
        )
    }
    assert by_stream[1][1] < 600_000 <= by_stream[2][0]
    assert by_stream[2][1] < 2_000_000 <= by_stream[3][0]
    [(beside,)] = ask(history, "SELECT count(*) FROM '$/beside/*.parquet'")
    assert rows + beside == len(records)


def test_charge_goes_by_cut_overs() -> None:
    first, second = (
        stream_of(1, PLAIN, 8000),
        stream_of(2, "SELECT temp FROM sensors SAMPLE PERIOD 2 s", 20_001),
    )
    alone = stream_of(3, "SELECT temp FROM sensors ONCE", 15_000, 26_000)
    third = stream_of(4, PLAIN, 30_000, 25_000)
    streams = [ended(first, 31_000), ended(second, 50_000), alone, third]
    assert intervals(streams[0], streams) == [(8000, 20_001)]
    assert intervals(streams[1], streams) == [(20_001, 50_000)], "the third was called off before it began"
    assert intervals(alone, streams) == intervals(third, streams) == []
    assert intervals(alone, [alone]) == [(15_000, 26_000)]
    assert sampled_before(streams[1], streams) == {20_001: 20_000}
    other_session = stream_of(9, PLAIN, 0, session=2)
    assert intervals(other_session, [*streams, other_session]) == [(0, None)]
    assert intervals(stream_of(5, "SELECT AVG(temp) FROM sensors SAMPLE PERIOD 5 s"), streams) == []


def days_of(history: History) -> list[str]:
    return [day_of(name) for name in history.manifest.of("sensors")]


def test_old_days_go_first_for_age_and_for_room(tmp_path: Path) -> None:
    streams = [stream_of(n, PLAIN, session=n) for n in range(1, 7)]
    records = np.concatenate([plain_records(s, range(150, 200), [1, 2]) for s in streams])
    log = logged(tmp_path, records, batch=100, segment_rows=100)
    history = History(tmp_path, Retention(history_days=4, log_days=1e6))
    history.compact(log.path, log.rows, streams)
    days = days_of(history)
    assert len(days) == 6
    noon_of_last = (ORIGIN // DAY_US + 6) * 86400 + 43200
    for_ever = History(tmp_path, Retention(history_days=KEEP_MAXIMUM, log_days=KEEP_MAXIMUM))
    for_ever.retain(log, log.rows, noon_of_last)
    assert days_of(history) == days
    history.retain(log, log.rows, noon_of_last)
    assert days_of(history) == days[-5:], "the day four days ago is not over everywhere"
    assert history.manifest.gone == days[0]
    one = next(iter(history.manifest.files.values())).bytes
    tight = History(tmp_path, Retention(history_days=400, history_bytes=one * 2 + 10, log_days=1e6))
    tight.retain(log, log.rows, noon_of_last)
    assert days_of(tight) == days[-2:]
    assert sorted(p.stem for p in (history.path / "sensors").iterdir()) == days[-2:]
    status = tight.status(log.path, log.rows)
    assert (status["from"], status["to"], status["dropped_to"]) == (days[-2], days[-1], days[-3])
    assert status["keep"]["history_days"] == 400
    assert tight.compact(log.path, log.rows, streams) == 0, "what was dropped does not come back"


def test_segments_go_when_compacted_read_and_old_or_large(tmp_path: Path) -> None:
    stream = stream_of(1, PLAIN)
    log = logged(tmp_path, plain_records(stream, range(500), [1]), batch=100, segment_rows=100)
    history = History(tmp_path, Retention(log_days=1))
    tomorrow = time.time() + 2 * 86400
    history.retain(log, log.rows, tomorrow)
    assert log.first == 0, "not compacted"
    history.compact(log.path, 250, [stream])
    history.retain(log, 150, tomorrow)
    assert log.first == 100, "not yet been through the proxy"
    history.retain(log, log.rows, time.time())
    assert log.first == 100, "still young"
    history.retain(log, log.rows, tomorrow)
    assert log.first == 200
    history.compact(log.path, log.rows, [stream])
    segment_bytes = os.path.getsize(Segments(log.path).segment(400))
    full = History(tmp_path, Retention(log_days=1e6, log_bytes=segment_bytes))
    full.retain(log, log.rows, time.time())
    assert Segments(log.path).begins() == [400]
    assert full.manifest.rows == 500


def test_a_manifest_of_another_version_is_named(tmp_path: Path) -> None:
    History(tmp_path)
    (tmp_path / "history" / "manifest.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(DataError, match="version 99"):
        History(tmp_path)
    (tmp_path / "history" / "manifest.json").write_text("{")
    with pytest.raises(DataError, match=r"manifest\.json"):
        Manifest.load(tmp_path / "history")


def test_a_file_that_cannot_be_read_is_named_and_loses_no_row(tmp_path: Path) -> None:
    stream = stream_of(1, PLAIN)
    log = logged(tmp_path, plain_records(stream, range(500), [1]), batch=100, segment_rows=100)
    history = History(tmp_path)
    history.compact(log.path, 300, [stream])
    *_, file = sorted((history.path / "sensors").iterdir())
    whole = file.read_bytes()
    flipped = bytearray(whole)
    for place in range(50, len(whole) // 2, 7):
        flipped[place] ^= 0xFF
    reader = Reader(history, log.path, [stream], {BY_NAME["temp"].number}, 0)
    for damaged in (b"", bytes(flipped), whole[: len(whole) // 2], None):
        if damaged is None:
            file.unlink()
        else:
            file.write_bytes(damaged)
        with pytest.raises(DamagedError, match=rf"{file}: .*: put it back from a copy"):
            reader.read(0, 300)
        with pytest.raises(OSError, match=str(file)):
            history.compact(log.path, log.rows, [stream])
        assert sorted(p.name for p in file.parent.iterdir() if p.suffix != ".parquet") == []
    file.write_bytes(whole)
    history.compact(log.path, log.rows, [stream])
    assert len(reader.read(0, 500)) == 500
    file.unlink()
    history = History(tmp_path)
    log.append(plain_records(stream, range(500, 510), [1]))
    assert history.compact(log.path, log.rows, [stream]) == 10, "it goes on without the file's rows"
    assert 10 < len(Reader(history, log.path, [stream], {BY_NAME["temp"].number}, 0).read(0, 510)) < 510


def test_rows_that_are_in_no_file_and_not_in_the_log_are_passed_over(tmp_path: Path) -> None:
    stream = stream_of(1, PLAIN)
    log = logged(tmp_path, plain_records(stream, range(500), [1]), batch=100, segment_rows=100)
    history = History(tmp_path, Retention(log_days=0))
    history.compact(log.path, log.rows, [stream])
    history.retain(log, log.rows, time.time() + 1)
    assert log.first == 400
    manifest, files = history.path / "manifest.json", sorted(history.path.glob("*/*.parquet"))
    kept = manifest.read_bytes()
    manifest.unlink()
    with pytest.raises(
        DataError, match=f"{manifest} is gone.*put it back from a copy, or take the files away"
    ):
        History(tmp_path)
    assert sorted(history.path.glob("*/*.parquet")) == files
    manifest.write_bytes(kept)
    assert History(tmp_path).manifest.rows == 500
    shutil.rmtree(history.path)
    history = History(tmp_path)
    assert history.compact(log.path, log.rows, [stream]) == 100
    assert ask(history, "SELECT min(row), max(row) FROM '$/sensors/*.parquet'") == [(400, 499)]


@pytest.mark.parametrize("left", [0, 150])
def test_a_log_that_has_lost_rows_goes_on_behind_what_is_in_files(tmp_path: Path, left: int) -> None:
    """Its numbers began again below: what came then was in no file, and gone once the log was cut."""
    stream = stream_of(1, PLAIN)
    records = plain_records(stream, range(200), [1, 2])
    log, history = logged(tmp_path, records[:300]), History(tmp_path)
    assert history.compact(log.path, log.rows, [stream]) == 300
    log.close()
    shutil.rmtree(log.path)
    if left:
        logged(tmp_path, records[:left]).close()
    HistoryService(tmp_path, StreamLog(tmp_path), lambda: [stream], lambda: 0)
    log = StreamLog(tmp_path)  # it stays so
    service = HistoryService(tmp_path, log, lambda: [stream], lambda: log.rows)
    assert log.rows == length(log.path) == 300
    assert log.first == (0 if left else 300)
    assert log.append(records[300:].copy()) == 300
    assert np.array_equal(read(log.path, 300, 400)["sample"], records["sample"][300:])
    assert service.compact() == 100
    service.stop()
    rows = ask(History(tmp_path), "SELECT row FROM '$/sensors/*.parquet' ORDER BY row")
    assert rows == [(row,) for row in range(400)]


def test_rows_of_streams_that_nobody_knows_are_passed_over(tmp_path: Path) -> None:
    stream: Stream = stream_of(1, PLAIN)
    log, history = logged(tmp_path, plain_records(stream, range(10), [1])), History(tmp_path)
    assert history.compact(log.path, log.rows, []) == 10
    assert history.manifest.files == {}


def test_rows_of_the_log_that_a_disk_has_changed_stop_no_compaction(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One of them in the year 292020."""
    stream = stream_of(1, PLAIN)
    records = plain_records(stream, range(10), [1, 2, 3])
    log, history = logged(tmp_path, records), History(tmp_path)
    file = Segments(log.path).segment(0)
    data = bytearray(file.read_bytes())
    fields = RECORD.fields
    assert fields is not None
    data[7 * RECORD.itemsize + fields["sample"][1] + 7] ^= 0x7F
    data[0] ^= 0x40
    file.write_bytes(data)
    with caplog.at_level("WARNING"):
        assert history.compact(log.path, log.rows, [stream]) == 30
    assert "2 of the rows 0 to 7 of the log are damaged" in caplog.text
    found = ask(history, "SELECT row FROM '$/sensors/*.parquet' ORDER BY row")
    assert [row for (row,) in found] == [row for row in range(30) if row not in (0, 7)]
