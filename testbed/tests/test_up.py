"""``skerry up``: what it starts ends with it. The processes here are told from real ones by nothing that it sees."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.tests.descriptions import ROOT

#: In the place of ``skerry``: notes that it runs, and takes a second to end.
CHILD = f"""#!{sys.executable}
import pathlib, os, signal, sys, time

def end(*_):
    time.sleep(1)
    notes.with_suffix(".ended").touch()
    sys.exit(0)

notes = pathlib.Path(__file__).parent / sys.argv[1]
signal.signal(signal.SIGINT, end)
notes.with_suffix(".asked").write_text(" ".join(sys.argv[2:]))
notes.with_suffix(".pid").write_text(f"{{os.getpid()}}\\n")
while True:
    time.sleep(60)
"""
UP = "import sys; sys.executable, *sys.argv = sys.argv[1:]; from skerry.cli.main import main; main()"


@pytest.fixture
def up(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It, once both processes run."""
    (tmp_path / "one.toml").write_text(ROOT)
    (tmp_path / "skerry").write_text(CHILD)
    (tmp_path / "skerry").chmod(0o755)
    options = ["--data", "kept", "--extensions", "built", "--port", "7700", "--speed", "2.5"]
    command = [
        sys.executable,
        "-c",
        UP,
        str(tmp_path / "python"),
        "skerry",
        "up",
        str(tmp_path / "one.toml"),
        *options,
    ]
    process = subprocess.Popen(command, start_new_session=True)
    wait_for(lambda: len(list(tmp_path.glob("*.pid"))) == 2 and all(pids(tmp_path)))
    yield process
    for pid in (process.pid, *pids(tmp_path)):
        if runs(pid):
            os.kill(pid, signal.SIGKILL)
    process.wait(30)


def pids(directory: Path) -> list[int]:
    return [int(path.read_text() or 0) for path in directory.glob("*.pid")]


def runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def wait_for(condition: Any, limit_s: float = 60) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.mark.parametrize(
    "numbers",
    [
        [signal.SIGINT],
        [signal.SIGINT, signal.SIGINT],
        [signal.SIGTERM, signal.SIGINT, signal.SIGTERM],
        [signal.SIGHUP],
        [signal.SIGHUP, signal.SIGHUP],
    ],
)
def test_whatever_ends_it_leaves_nothing_behind(
    up: subprocess.Popen[bytes], tmp_path: Path, numbers: list[int]
) -> None:
    for number in numbers:
        up.send_signal(number)
        time.sleep(0.3)
    assert up.wait(60) == 0
    assert [runs(pid) for pid in pids(tmp_path)] == [False, False]
    assert {path.name for path in tmp_path.glob("*.ended")} == {"testbed.ended", "gateway.ended"}


@pytest.mark.usefixtures("up")
def test_the_gateway_is_told_of_speed_root_data_and_extensions(tmp_path: Path) -> None:
    asked = (tmp_path / "gateway.asked").read_text()
    options = "--speed 2.5 --link socket://127.0.0.1:7700 --data kept --extensions built"
    assert asked == f"--listen 127.0.0.1:8642 {options}"


def test_one_that_ends_ends_the_others(up: subprocess.Popen[bytes], tmp_path: Path) -> None:
    os.kill(int((tmp_path / "gateway.pid").read_text()), signal.SIGKILL)
    assert up.wait(60) == 1
    assert [path.name for path in tmp_path.glob("*.ended")] == ["testbed.ended"]
