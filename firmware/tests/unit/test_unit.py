"""Modules of the firmware, each by itself on the host, under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

FIRMWARE = Path(__file__).resolve().parent.parent.parent
BUILD = FIRMWARE.parent / "build" / "firmware" / "host"
FLAGS = [
    "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-g", "-O1", "@warnings.opt", "-fno-strict-aliasing",
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Iboards/host", "-Iinclude", "-I.",
]  # fmt: skip
#: Each program names the modules it tests in its first comment, and its tests in a table.
PROGRAMS = {path.stem: path.read_text() for path in sorted(Path(__file__).parent.glob("*.c"))}
CASES = [(program, name) for program, text in PROGRAMS.items() for name in re.findall(r"TEST\((\w+)\)", text)]


@cache
def built(program: str) -> Path:
    """The program, compiled with the modules under test."""
    modules = re.search(r"sources:(.*?)\*/", PROGRAMS[program], re.DOTALL)
    assert modules, f"{program}.c does not say its sources"
    path = BUILD / f"unit_{program}"
    path.parent.mkdir(parents=True, exist_ok=True)
    sources = [f"tests/unit/{program}.c", *re.findall(r"[\w/]+\.c", modules[1])]
    # Whole or not at all: tests side by side build it, too.
    fresh = path.with_suffix(f".{os.getpid()}")
    subprocess.run(["gcc", *FLAGS, "-o", str(fresh), *sources, "-lm"], cwd=FIRMWARE, check=True)
    fresh.replace(path)
    return path


@pytest.mark.parametrize(("program", "name"), CASES)
def test_of_a_module(program: str, name: str) -> None:
    done = subprocess.run([built(program), name], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{program}: {name}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_case_is_listed(program: str) -> None:
    listed = subprocess.run([built(program)], capture_output=True, text=True, check=True).stdout.split()
    assert listed == [name for of, name in CASES if of == program]
    functions = re.findall(r"^static void (\w+)\(void\)$", PROGRAMS[program], re.MULTILINE)
    assert set(listed) <= set(functions) | set(
        re.findall(r"^static void (\w+)\(void\) \{", PROGRAMS[program], re.MULTILINE)
    )
