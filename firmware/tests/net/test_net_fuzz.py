"""No frame from the radio and no byte from the serial line crashes a mote."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FIRMWARE = Path(__file__).resolve().parent.parent.parent
BUILD = FIRMWARE.parent / "build" / "firmware" / "host"
#: 10 million and more take half an hour.
INPUTS = int(os.environ.get("SKERRY_FUZZ_INPUTS", "1000000"))
FLAGS = [
    "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-g", "-O1", "@warnings.opt",
    "-fno-strict-aliasing", "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all", "-Iboards/host", "-Iinclude", "-I.",
]  # fmt: skip


@pytest.fixture(scope="module")
def fuzzer() -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    sources = [
        str(path.relative_to(FIRMWARE))
        for folder in ("lib", "net", "query", "commands", "kernel", "boards/host", "index", "storage")
        for path in (FIRMWARE / folder).rglob("*.c")
        # Rows lie in the log of what is stored.
        if path != FIRMWARE / "boards" / "host" / "rowstore.c"
    ]
    sources += [f"join/{name}.c" for name in ("mote_set", "pairs", "summary", "far_roots", "search")]
    # Whole or not at all: tests side by side build it, too.
    registry, fresh = (BUILD / f"fuzz_frames.{os.getpid()}{suffix}" for suffix in (".c", ""))
    subprocess.run(
        [sys.executable, "tools/registry.py", registry, *(FIRMWARE / "commands").glob("*.c")],
        cwd=FIRMWARE,
        check=True,
    )
    program = BUILD / "fuzz_frames"
    subprocess.run(
        ["gcc", *FLAGS, "-o", str(fresh), "tests/net/fuzz_frames.c", *sources, registry],
        cwd=FIRMWARE,
        check=True,
    )
    registry.unlink()
    return fresh.replace(program)


@pytest.mark.slow
@pytest.mark.parametrize("role", ["mote", "root"])
def test_so_many_inputs_each(fuzzer: Path, role: str, drawn_seed: int) -> None:
    done = subprocess.run(
        [fuzzer, role, str(INPUTS), str(drawn_seed)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300 * max(1, INPUTS // 1_000_000),
    )
    print(done.stdout, end="")
    assert done.returncode == 0, done.stderr[-3000:]
    found = re.search(r"(\d+) inputs, seed (\d+), (\d+) frames", done.stdout)
    assert found is not None
    assert int(found[1]) == INPUTS
    assert int(found[3]) > 1000, "the mote took part"
    taken = {
        name: int(number)
        for name, number in re.findall(r"(bundles|serial|searches|nominations|met) (\d+)", done.stdout)
    }
    assert taken["bundles"] > 1000, "frames got past the filters to the handlers"
    assert taken["searches"] > 100
    assert taken["nominations"] > 100
    assert taken["met"] > 50, "rows of pairs came to the ends of their ways"
    assert role == "mote" or taken["serial"] > 100_000, "and so did the serial line's"
