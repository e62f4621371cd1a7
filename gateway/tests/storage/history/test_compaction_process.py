"""Compaction in a process of its own, which dies, or whose gateway does."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import numpy as np
import pytest

from gateway.tests.pasts import plain_records, stream_of
from gateway.tests.process import wait_for
from skerry.storage.history import compaction_process
from skerry.storage.history.compaction_process import CompactionProcess, sole_writer
from skerry.storage.history.damaged_files import DamagedError
from skerry.storage.history.store import History
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.state import DataError

STREAM = stream_of(1, "SELECT nodeid, temp, light FROM sensors SAMPLE PERIOD 5 s")


def numbers(data: Path) -> list[int]:
    found = duckdb.sql(f"SELECT row FROM '{data}/history/sensors/*.parquet' ORDER BY row").fetchall()
    return [row for (row,) in found]


def test_a_process_that_is_killed_at_its_work_is_begun_again(tmp_path: Path) -> None:
    log, process = StreamLog(tmp_path), CompactionProcess()
    history = History(tmp_path, perform=process.done)
    log.append(plain_records(STREAM, range(100), [1, 2, 3]))
    assert history.compact(log.path, log.rows, [STREAM]) == 300
    pid = process.pid
    assert pid is not None
    log.append(plain_records(STREAM, range(100, 200), [1, 2, 3]))
    os.kill(pid, signal.SIGSTOP)
    failures: list[str] = []

    def compact() -> None:
        try:
            history.compact(log.path, log.rows, [STREAM])
        except OSError as error:
            failures.append(str(error))

    thread = threading.Thread(target=compact)
    thread.start()
    os.kill(pid, signal.SIGKILL)
    thread.join()
    assert failures == ["the process that compacts was killed by signal SIGKILL; it is tried again"]
    assert history.compact(log.path, log.rows, [STREAM]) == 300
    assert process.pid not in (None, pid)
    process.end()
    assert process.pid is None
    assert numbers(tmp_path) == list(range(600))


def test_what_is_wrong_with_a_file_is_told_as_if_it_were_read_here(tmp_path: Path) -> None:
    log, process = StreamLog(tmp_path), CompactionProcess()
    history = History(tmp_path, perform=process.done)
    log.append(plain_records(STREAM, range(100), [1]))
    history.compact(log.path, log.rows, [STREAM])
    file = next((tmp_path / "history" / "sensors").iterdir())
    file.write_bytes(b"PAR1")
    log.append(plain_records(STREAM, range(100, 200), [1]))
    with pytest.raises(DamagedError, match=f"^{file}: "):
        history.compact(log.path, log.rows, [STREAM])
    process.end()


def test_damaged_rows_of_the_log_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log, process = StreamLog(tmp_path), CompactionProcess()
    records = plain_records(STREAM, range(100), [1])
    records["stream"][10:12] = 0
    log.append(records)
    History(tmp_path, perform=process.done).compact(log.path, log.rows, [STREAM])
    process.end()
    assert "history: 2 of the rows 10 to 11 of the log are damaged: nobody gets them" in caplog.text
    assert numbers(tmp_path) == [*np.r_[0:10, 12:100]]


def test_it_ends_with_its_gateway_and_the_next_one_waits_for_that(tmp_path: Path) -> None:
    """A gateway that is killed leaves a process that does not run at the moment."""
    text = (
        "import sys; from pathlib import Path; from skerry.storage.history.compaction import Redating; "
        "from skerry.storage.history.compaction_process import CompactionProcess; "
        "from skerry.storage.history.manifest import Manifest; "
        "path = Path(sys.argv[1]); process = CompactionProcess(); process.done(Redating(path, Manifest(), (), ())); "
        "print(process.pid, flush=True); sys.stdin.read()"
    )
    History(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", text, str(tmp_path / "history")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as gateway:
        assert gateway.stdout is not None
        pid = int(gateway.stdout.readline())
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        gateway.kill()
        gateway.wait()
        began: list[History] = []
        thread = threading.Thread(target=lambda: began.append(History(tmp_path)))
        thread.start()
        thread.join(0.3)
        assert not began
        os.kill(pid, signal.SIGCONT)
        thread.join()
    assert began


def test_a_process_that_does_not_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction_process, "_ENDING_S", 0.1)
    with (tmp_path / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with (
            pytest.raises(DataError, match="a process of an earlier gateway still writes files of the past"),
            sole_writer(tmp_path),
        ):
            pass
