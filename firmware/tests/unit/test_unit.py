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
#: Interfaces of the firmware that a program may implement itself, in place of what does.
REPLACED_AT_MOST = 5
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


@cache
def declared() -> dict[str, str]:
    """The header that declares each function and variable of the firmware."""
    found: dict[str, str] = {}
    for path in sorted(FIRMWARE.rglob("*.h")):
        header = str(path.relative_to(FIRMWARE))
        if header.startswith("tests/"):
            continue
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        functions = re.findall(r"^(?!static\b|typedef\b|#)[a-z][\w \*]*?\b(\w+)\((?!\*)", text, re.MULTILINE)
        variables = re.findall(
            r"^extern [^;({]*(?:\{[^}]*\} *)?\b(\w+)(?:\[[^]]*\])*[,;]", text, re.MULTILINE
        )
        found |= dict.fromkeys([*functions, *variables], header)
    return found


def replaced(program: str) -> dict[str, list[str]]:
    """What the program implements itself, of what a header of the firmware declares, by that header: each is a module that is not the real
    one. Weak is only what every program has, a broken invariant that fails the test."""
    unlinked = BUILD / f"unit_{program}.{os.getpid()}.o"
    unlinked.parent.mkdir(parents=True, exist_ok=True)
    flags = [flag for flag in FLAGS if "sanitize" not in flag]
    subprocess.run(
        ["gcc", *flags, "-c", "-o", str(unlinked), f"tests/unit/{program}.c"], cwd=FIRMWARE, check=True
    )
    table = subprocess.run(["nm", "-g", str(unlinked)], capture_output=True, text=True, check=True).stdout
    unlinked.unlink()
    modules: dict[str, list[str]] = {}
    for name in re.findall(r" [TDBRC] (\w+)$", table, re.MULTILINE):
        if name != "main":
            modules.setdefault(declared().get(name, "no header"), []).append(name)
    return modules


@pytest.mark.parametrize("program", PROGRAMS)
def test_few_modules_are_replaced(program: str) -> None:
    modules = replaced(program)
    assert "no header" not in modules, (
        f"{program}.c: static is what no header of the firmware declares: {modules}"
    )
    assert len(modules) <= REPLACED_AT_MOST, (
        f"{program}.c replaces {len(modules)} modules, and {REPLACED_AT_MOST} are the most: {modules}"
    )


def test_what_is_replaced_is_found() -> None:
    assert {header: sorted(names) for header, names in replaced("clocksync").items()} == {
        "kernel/clock.h": ["clock_now"]
    }
    assert set(replaced("tree")) == {
        "drivers/settings.h", "kernel/clock.h", "net/mac/mac.h", "net/app.h", "net/routing/routing_ops.h",
    }  # fmt: skip
    assert "mac_counters" in replaced("tree")["net/mac/mac.h"]


@pytest.mark.parametrize(("program", "name"), CASES)
def test_of_a_module(program: str, name: str) -> None:
    done = subprocess.run([built(program), name], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"{program}: {name}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_case_is_listed(program: str) -> None:
    listed = subprocess.run([built(program)], capture_output=True, text=True, check=True).stdout.split()
    assert listed == [name for of, name in CASES if of == program]
    functions = re.findall(r"^static void (\w+)\(void\)$", PROGRAMS[program], re.MULTILINE)
    assert set(listed) <= set(functions) | set(
        re.findall(r"^static void (\w+)\(void\) \{", PROGRAMS[program], re.MULTILINE)
    )
