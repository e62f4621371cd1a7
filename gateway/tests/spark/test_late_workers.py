"""A Python worker that starts later than Spark waits for it: its query begins again, and Java goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.tests.process import Daemon, wait_for
from gateway.tests.sources.line_server import LineServer, Reader, eventually
from skerry.spark.late_workers import TIMES, LateWorkers

#: For Python processes of a gateway: the first reader of a streaming source sleeps for longer than Spark waits.
SLEEPS = """
import os, time
if b"python_streaming_source_runner" in open("/proc/self/cmdline", "rb").read():
    try:
        os.close(os.open({mark!r}, os.O_CREAT | os.O_EXCL))
        time.sleep(13)
    except FileExistsError:
        pass
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_reader_that_comes_too_late_costs_no_new_java(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, folder = tmp_path / "slept", tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SLEEPS.format(mark=str(mark)))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    )
    server = LineServer()
    daemon.start()
    ada = daemon.client("ada")
    ada.execute("CREATE SENSORS detectors (id INT, reading STREAM (level DOUBLE))")
    ada.execute(f"INSERT INTO detectors VALUES (1, '{server.address}')")
    reader = Reader(ada.query("SELECT level FROM detectors", linger_s=None))
    wait_for(mark.exists)
    java = daemon.child("java")
    server.send({"level": 1.5})
    eventually(lambda: [row["level"] for row in reader.got], [1.5])
    assert daemon.child("java") == java
    reader.rows.stop()
    server.close()


def test_of_other_reasons_and_without_end_it_does_not_begin_again() -> None:
    late, error = (
        LateWorkers(),
        RuntimeError("[STREAM_FAILED] … Python worker failed to connect back. SQLSTATE: XXKST"),
    )
    assert not late.forgives(RuntimeError("out of memory"))
    assert [late.forgives(error) for _ in range(TIMES + 1)] == [True] * TIMES + [False]
    late.came()
    assert late.forgives(error)
