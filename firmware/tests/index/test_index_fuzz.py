"""Nothing that comes from outside makes the arithmetic of storage fault."""

from __future__ import annotations

import re
import subprocess

import pytest

from firmware.tests.index.checked import SOURCES
from firmware.tests.query.host import FIRMWARE, SANITIZERS, build

INPUTS = 100_000


def test_forged_histograms_and_fields_never_fault(
    drawn_seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    fuzzer = build("fuzz_index", (*SOURCES, FIRMWARE / "tests" / "index" / "fuzz.c"), SANITIZERS)
    done = subprocess.run([fuzzer, str(INPUTS), str(drawn_seed)], capture_output=True, text=True, check=False)
    with capsys.disabled():
        print(f"\nindex fuzz, seed {drawn_seed}: {done.stdout.strip()}")
    assert done.returncode == 0, f"seed {drawn_seed}: {done.stderr}"
    for accepted, tried in re.findall(r"(\d+)/(\d+)", done.stdout):
        assert 0 < int(accepted) < int(tried), "the fuzzer must reach both sides of every check"
