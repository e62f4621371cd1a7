"""Spark is stopped in the middle of a batch: nobody is shown what that cancels, and the batch is not done."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from skerry.spark.streaming import StreamingQuery
from skerry.storage.log.record import RECORD, Block
from skerry.storage.log.stream_log import StreamLog

#: As long as Spark's own words on a job that it has cancelled.
CANCELLED = (
    "An error occurred while calling o731.getResult.\n" + "\tat org.apache.spark.Some.where(some:1)\n" * 300
)


@pytest.fixture
def level() -> Iterator[None]:
    """The loggers' of Spark, afterwards as before."""
    log = logging.getLogger("py4j")
    before = log.level
    log.setLevel(logging.ERROR)
    yield
    log.setLevel(before)


@pytest.mark.spark
@pytest.mark.usefixtures("level")
def test_a_batch_that_is_cancelled_is_no_error_and_not_done(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    log = StreamLog(tmp_path)
    log.append(np.zeros(3, RECORD))
    log.close()
    begun, cancelled = threading.Event(), threading.Event()

    def process(block: Block) -> int:
        assert len(block.records) == 3
        begun.set()
        cancelled.wait(60)
        raise RuntimeError(CANCELLED)

    query = StreamingQuery("local[1]", tmp_path, log.path, process)
    query.start()
    assert begun.wait(120), query.state
    threading.Timer(1.0, cancelled.set).start()
    query.stop()
    assert (tmp_path / "checkpoint" / "offsets" / "0").exists()
    assert not (tmp_path / "checkpoint" / "commits" / "0").exists()
    shown = capfd.readouterr().err + caplog.text
    assert "Exception" not in shown, shown
    assert "Error" not in shown, shown
