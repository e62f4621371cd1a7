"""``tools/size.py`` on small programs: what fits passes; what does not, or has no bound, fails the build and is named."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SIZE = Path(__file__).resolve().parent.parent.parent / "tools" / "size.py"
PLAIN = "static volatile char kept[100]; int main(void) { kept[1] = 2; for (;;) {} }\n"
HANDLER = {
    "avr": "void __vector_1(void) __attribute__((signal, used)); void __vector_1(void) {}\n",
    "arm": "void some_isr(void) __attribute__((used)); void some_isr(void) {}\n",
}
COMPILERS = {
    "avr": ["avr-gcc", "-mmcu=atmega1281"],
    "arm": ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-nostdlib", "-Wl,-e,main"],
}


def measured(
    folder: Path, arch: str, source: str, *, flash: int = 10000, ram: int = 2000
) -> subprocess.CompletedProcess[str]:
    """Compile and measure."""
    if not shutil.which(COMPILERS[arch][0]):
        pytest.skip(f"{COMPILERS[arch][0]} is not installed")
    (folder / "program.c").write_text(HANDLER[arch] + source)
    subprocess.run(
        [*COMPILERS[arch], "-O1", "-fstack-usage", "-fno-optimize-sibling-calls", "-c", "program.c", "-o", "program.o"],
        cwd=folder, check=True,
    )  # fmt: skip
    subprocess.run([*COMPILERS[arch], "program.o", "-o", "program.elf"], cwd=folder, check=True)
    return subprocess.run(
        [sys.executable, str(SIZE), "--flash-limit", str(flash), "--ram-limit", str(ram), "--stack-usage", str(folder), "program.elf"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("arch", COMPILERS)
def test_what_fits_is_a_table(tmp_path: Path, arch: str) -> None:
    done = measured(tmp_path, arch, PLAIN)
    assert done.returncode == 0, done.stderr
    table = {line.split()[0]: line.split() for line in done.stdout.splitlines()}
    assert table["static"][2] == "100"
    assert table["stack"][2] == "main"
    assert int(table["RAM"][1]) >= 100 + int(table["stack"][1])


@pytest.mark.parametrize("arch", COMPILERS)
@pytest.mark.parametrize(("limit", "what"), [({"flash": 10}, "flash"), ({"ram": 90}, "RAM")])
def test_what_is_too_large_fails_and_says_by_how_much(
    tmp_path: Path, arch: str, limit: dict[str, int], what: str
) -> None:
    done = measured(tmp_path, arch, PLAIN, **limit)
    assert done.returncode == 1
    assert f"program.elf: {what} is " in done.stderr
    assert f"over its limit of {next(iter(limit.values()))}" in done.stderr


@pytest.mark.parametrize("arch", COMPILERS)
def test_the_deepest_path_counts_through_all_calls(tmp_path: Path, arch: str) -> None:
    source = """
        __attribute__((noinline)) static int deep(int n) { volatile char room[200]; room[n] = 1; return room[n]; }
        __attribute__((noinline)) static int middle(int n) { volatile char room[50]; room[n] = 1; return deep(n) + room[n]; }
        __attribute__((noinline)) static int shallow(int n) { volatile char room[80]; room[n] = 1; return room[n]; }
        static volatile int n;
        int main(void) { for (;;) n = middle(n) + shallow(n); }
    """
    done = measured(tmp_path, arch, source)
    assert done.returncode == 0, done.stderr
    stack = next(line for line in done.stdout.splitlines() if line.startswith("stack"))
    assert stack.endswith("main > middle > deep")
    assert 250 <= int(stack.split()[1]) < 400


@pytest.mark.parametrize("arch", COMPILERS)
def test_recursion_fails_with_its_cycle(tmp_path: Path, arch: str) -> None:
    source = """
        static int ping(int n);
        __attribute__((noinline)) static int pong(int n) { return n ? ping(n - 1) + 1 : 0; }
        __attribute__((noinline)) static int ping(int n) { return n ? pong(n - 1) + 2 : 1; }
        static volatile int n;
        int main(void) { for (;;) n = ping(n); }
    """
    done = measured(tmp_path, arch, source)
    assert done.returncode == 1
    assert done.stderr.strip() in ("recursion: ping -> pong -> ping", "recursion: pong -> ping -> pong")


@pytest.mark.parametrize("arch", COMPILERS)
def test_a_call_through_a_pointer_must_be_declared(tmp_path: Path, arch: str) -> None:
    source = """
        static void one(void) {} static void (*volatile handler)(void) = one;
        __attribute__((noinline)) static void dispatch(void) { handler(); }
        int main(void) { for (;;) dispatch(); }
    """
    done = measured(tmp_path, arch, source)
    assert done.returncode == 1
    assert "dispatch calls through a pointer: say in REGISTRATIONS what program.c may reach" in done.stderr


@pytest.mark.parametrize("arch", COMPILERS)
def test_a_frame_without_bound_fails(tmp_path: Path, arch: str) -> None:
    source = "static volatile int n; int main(void) { for (;;) { volatile char room[n]; room[n - 1] = 1; n = room[0]; } }\n"
    done = measured(tmp_path, arch, source)
    assert done.returncode == 1
    assert "main has a frame without bound" in done.stderr


def test_what_is_no_known_elf_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.elf").write_bytes(b"no image at all, sorry")
    done = subprocess.run(
        [sys.executable, str(SIZE), "--flash-limit", "1", "--ram-limit", "1", "--stack-usage", str(tmp_path), "x.elf"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "x.elf: not an ELF file for a known machine" in done.stderr


RUN_ON = """
        .global main, aside, first, second, deep
        .section .text
        main: rcall .Lway
        rjmp main
        aside: inc r24
        .Lway: rjmp first
        first:
        second: push r24
        rcall deep
        pop r24
        inc r25
        deep: ret
        .global __vector_1
        __vector_1: reti
        .type main, @function
        .type aside, @function
        .type first, @function
        .type second, @function
        .type deep, @function
"""


def test_ways_and_functions_that_run_on_into_the_next_are_followed(tmp_path: Path) -> None:
    """As tools/shrink leaves them: a call of a jump, two functions at one address, one that ends where another begins."""
    (tmp_path / "program.s").write_text(RUN_ON)
    frames = {"main": 0, "aside": 100, "first": 0, "second": 5, "deep": 50, "__vector_1": 0}
    usage = "".join(f"program.c:0:0:{name}\t{size}\tstatic\n" for name, size in frames.items())
    (tmp_path / "program.su").write_text(usage)
    subprocess.run(
        ["avr-gcc", "-mmcu=atmega1281", "program.s", "-o", "program.elf"], cwd=tmp_path, check=True
    )
    done = subprocess.run(
        [sys.executable, str(SIZE), "--flash-limit", "10000", "--ram-limit", "2000", "--stack-usage", "program.su", "program.elf"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stack = next(line for line in done.stdout.splitlines() if line.startswith("stack"))
    # Two bytes for each of the calls of main, first and deep, and the interrupt's.
    assert int(stack.split()[1]) == 5 + 50 + 4 * 2
