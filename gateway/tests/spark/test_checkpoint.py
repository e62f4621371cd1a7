"""A checkpoint that is not as Spark wrote it, as a power cut leaves one, keeps nobody from his rows."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.process import Daemon, ask, queue_rows, wait_for
from skerry.spark.checkpoint import lost_state, usable
from skerry.storage.log.record import RECORD
from skerry.storage.log.stream_log import StreamLog

BATCH = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1795486579099,"conf":{}}\n{"row": %d, "version": 7}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with ten rows, nine of which Spark has taken in three batches; a fourth is begun."""
    log = StreamLog(tmp_path)
    log.append(np.zeros(10, RECORD))
    log.close()
    for name in ("offsets", "commits"):
        (tmp_path / "checkpoint" / name).mkdir(parents=True)
    (tmp_path / "checkpoint" / "metadata").write_text('{"id":"fb5d800f-31f0-43c4-a94d-5c15a6a58b82"}')
    for batch in range(4):
        (tmp_path / "checkpoint" / "offsets" / str(batch)).write_text(BATCH % min(10, 3 * (batch + 1)))
    for batch in range(3):
        (tmp_path / "checkpoint" / "commits" / str(batch)).write_text(COMMIT)
    return tmp_path


def test_one_that_is_whole_stays(data: Path) -> None:
    directory = usable(data, data / "log")
    assert (directory / "offsets" / "3").exists()
    (directory / "commits" / "3").write_text(COMMIT)
    (directory / "offsets" / ".4.tmp").touch()
    usable(data, data / "log")
    assert (directory / "commits" / "3").exists()
    for name in ("offsets", "commits"):
        shutil.rmtree(directory / name)
    usable(data, data / "log")
    assert (directory / "metadata").exists(), "no batch has begun yet"
    shutil.rmtree(directory)
    assert not usable(data, data / "log").exists()


def test_one_of_a_log_that_is_away_is_kept(data: Path) -> None:
    (data / "log").rename(data / "elsewhere")
    assert usable(data, data / "log").exists()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("metadata", "", "metadata is not as Spark wrote it"),
        ("metadata", None, "metadata is gone"),
        ("offsets/3", "", "offsets/3 is not as Spark wrote it"),
        ("offsets/3", 'v1\n{"batchWat', "offsets/3 is not as Spark wrote it"),
        ("offsets/3", "\ufffd\n{}\n{}", "offsets/3 is not as Spark wrote it"),
        ("offsets/2", BATCH % 11, "offsets/2 says row 11, and the log ends before row 10"),
        (
            "offsets/2",
            BATCH.replace("version", "age") % 9,
            "offsets/2 does not say which version of the users' index",
        ),
        ("commits/2", "v1\n", "commits/2 is not as Spark wrote it"),
        ("commits/2", None, "begins batch 3 last, and ends batch 1"),
    ],
)
def test_one_that_is_damaged_is_named_and_taken_away(
    data: Path, caplog: pytest.LogCaptureFixture, name: str, text: str | None, said: str
) -> None:
    file = data / "checkpoint" / name
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    with caplog.at_level(logging.WARNING):
        assert not usable(data, data / "log").exists()
    [told] = caplog.messages
    assert said in told
    assert str(data / "checkpoint") in told
    assert "from row 0 on" in told


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        (
            "SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.",
            True,
        ),
        ("IOException: Error reading delta file file:/data/joins/checkpoint/state/0/3/17.delta of …", True),
        ("[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot restart streaming query with …", True),
        (
            "malformed input around byte 39\njava.io.UTFDataFormatException: malformed input around byte 39\n\tat "
            "org.apache.spark.sql.execution.streaming.state.StateSchemaCompatibilityChecker$.readSchemaFile(StateSchemaCompatibilityChecker.scala:331)",
            True,
        ),
        (
            "at org.apache.spark.sql.execution.streaming.state.StateStoreRDD.compute(StateStoreRDD.scala:134)",
            False,
        ),
        ("ExecutorLostFailure (executor 1 exited caused by one of the running tasks)", False),
    ],
)
def test_what_joins_have_kept_is_told_from_other_errors(said: str, lost: bool) -> None:
    assert lost_state(said) is lost


def numbers(data: Path, name: str) -> list[int]:
    """Batches that Spark has begun, or ended."""
    directory = data / "checkpoint" / name
    return (
        [int(file.name) for file in directory.iterdir() if file.name.isdecimal()]
        if directory.is_dir()
        else []
    )


def last(data: Path, name: str) -> Path:
    """The file of the last batch."""
    return data / "checkpoint" / name / str(max(numbers(data, name)))


@pytest.mark.spark
@pytest.mark.slow
def test_rows_come_once_though_it_was_damaged(peer: RootPeer, daemon: Daemon) -> None:
    daemon.start()
    ada = daemon.client("ada")
    asked, query, program = ask(peer, daemon)
    queue_rows(peer, query, range(60, 64), program)
    wait_for(lambda: ada.status()["processed"] == 12)
    rows = iter(asked)
    got = [next(rows) for _ in range(12)]
    damages: list[Callable[[], object]] = [
        lambda: last(daemon.data, "offsets").write_bytes(b""),
        lambda: shutil.rmtree(daemon.data / "checkpoint" / "offsets"),
    ]
    for epoch, damage in enumerate(damages, 64):
        # A batch ends after its rows have come.
        wait_for(lambda: numbers(daemon.data, "commits") and last(daemon.data, "commits").stat().st_size)
        daemon.kill()
        damage()
        daemon.start()
        queue_rows(peer, query, range(epoch, epoch + 1), program)
        got += [next(rows) for _ in range(3)]
    assert [row["temp"] for row in got] == [
        (2000 + epoch * 10 + node) / 100 for epoch in range(60, 66) for node in (1, 2, 3)
    ]
    assert daemon.log.read_text().count("it is taken away, and Spark reads the log again from row 0 on") == 2
