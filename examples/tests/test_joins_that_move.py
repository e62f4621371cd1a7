"""The example of a join that moves: its command, as a user starts it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "examples.joins_that_move"]

pytestmark = [pytest.mark.usefixtures("skerry_built"), pytest.mark.slow]


def test_a_join_moves_and_less_is_sent() -> None:
    done = subprocess.run(
        [*COMMAND, "--seed", "1"], cwd=ROOT, capture_output=True, text=True, timeout=240, check=True
    )
    told = done.stdout
    assert (
        "joined at base: the gateway has 6 with 7, 6 with 8, 7 with 8, 9 with 10, 9 with 11, 10 with 11"
        in told
    )
    [before, after] = re.findall(
        r"^(.*): [\d,]+ frames, ([\d,.]+) kB on the air and [\d.]+ J an hour", told, re.MULTILINE
    )
    assert before[0] == "at base"
    assert f"moved from at base to {after[0]}: pair 100 % was assumed and" in told
    assert re.search(rf"joined {after[0]}: mote \d+ has", told)
    assert float(after[1]) < 0.9 * float(before[1])
    assert int(re.findall(r"(\d+) answers of 6 pairs", told)[0]) > 10


def test_ctrl_c_ends_it_and_its_gateway() -> None:
    process = subprocess.Popen(
        COMMAND, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert process.stdout is not None
    while "joined at base" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert re.search(r"\d+ answers of 6 pairs", told)
    left = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=True).stdout
    assert not [line for line in left.splitlines() if line.split()[0] == str(process.pid)]


def test_what_cannot_be_is_refused() -> None:
    done = subprocess.run([*COMMAND, "--minutes", "0"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--minutes is more than 0" in done.stderr
