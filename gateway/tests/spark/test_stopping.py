"""Spark starts ahead, and reads nothing before it is told to. It is stopped in the middle of a batch: nobody is shown what that cancels,
and the batch is not done."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from gateway.tests.process import said, started_by, wait_for
from skerry.execution.matched import MatchedBatch
from skerry.spark.supervisor import SparkDriver
from skerry.storage.log.record import RECORD
from skerry.storage.log.stream_log import StreamLog


@pytest.mark.spark
def test_a_batch_that_is_given_up_is_no_error_and_not_done(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    log = StreamLog(tmp_path)
    log.append(np.zeros(3, RECORD))
    log.close()
    begun, ends = threading.Event(), threading.Event()

    def process(batch: MatchedBatch) -> int:
        assert (batch.first, batch.end) == (0, 3)
        begun.set()
        ends.wait(60)
        raise RuntimeError("the gateway ends")

    driver = SparkDriver("local[1]", tmp_path, log.path, process)
    driver.prepare()
    # Its Python runs once Java does, and has been tried.
    wait_for(lambda: _has_workers(driver.pid))
    assert (driver.state, begun.is_set()) == ("starting", False)
    driver.start()
    assert begun.wait(120), driver.state
    threading.Timer(1.0, ends.set).start()
    driver.stop()
    assert driver.pid is None
    assert driver.state == "stopped"
    assert (tmp_path / "checkpoint" / "offsets" / "0").exists()
    assert not (tmp_path / "checkpoint" / "commits" / "0").exists()
    shown = capfd.readouterr().err + caplog.text
    assert "Exception" not in shown, shown
    assert "Error" not in shown, shown


def _has_workers(pid: int | None) -> bool:
    return pid is not None and any("pyspark.daemon" in said(child, "cmdline") for child in started_by(pid))
