"""Nothing that comes from outside makes a search by content fault."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from firmware.tests.join.searching import SOURCES
from firmware.tests.query.host import FIRMWARE, SANITIZERS, build

INPUTS = 1_000_000


def test_forged_searches_never_fault(capsys: pytest.CaptureFixture[str]) -> None:
    """SKERRY_FUZZ_SEED repeats a run."""
    seed = int(os.environ.get("SKERRY_FUZZ_SEED") or int.from_bytes(os.urandom(4), "little"))
    fuzzer = build("fuzz_search", (*SOURCES, FIRMWARE / "tests" / "join" / "fuzz.c"), SANITIZERS)
    done = subprocess.run([fuzzer, str(INPUTS), str(seed)], capture_output=True, text=True, check=False)
    with capsys.disabled():
        print(f"\nsearch fuzz, seed {seed}: {done.stdout.strip()}")
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    for accepted, tried in re.findall(r"(\d+)/(\d+)", done.stdout):
        assert 0 < int(accepted) < int(tried), "the fuzzer must reach both sides of every check"
