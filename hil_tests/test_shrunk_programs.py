"""Programs that the tool has shrunk do what the compiler made of them: both run on an emulated chip, and tell the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hil_tests.programs import program
from skerry_testbed.core import PROJECT, World

TOOLS = PROJECT / "firmware" / "tools"
CHIP = ["-mmcu=atmega1281"]
FLAGS = [
    *CHIP,
    "-Os",
    "-std=c11",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-strict-aliasing",
    "-fstack-usage",
    "-S",
]
SECONDS = 4


def link(output: Path, *sources: Path) -> int:
    """Bytes of code."""
    subprocess.run(["avr-gcc", *CHIP, "-mrelax", "-Wl,--gc-sections", "-o", output, *sources], check=True)
    sizes = subprocess.run(["avr-size", "-A", output], check=True, capture_output=True, text=True).stdout
    return int(next(line.split()[1] for line in sizes.splitlines() if line.startswith(".text")))


def told(elf: Path) -> bytes:
    """What a program says on its serial line."""
    world = World(1)
    mote = world.add_mote(0, "iris", elf, b"", clock_ppm=0.0, supply_mv=3000.0, boot_ns=0)
    text = b""
    for second in range(1, SECONDS + 1):
        world.run(second * 10**9)
        text += world.uart_read(mote)
    assert not world.fault(mote)
    return text


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [["-mcall-prologues"], [], ["-mcall-prologues", "-fno-crossjumping"]],
    ids=["shared prologues", "own", "long"],
)
@pytest.mark.parametrize("seed", range(8))
def test_a_shrunk_program_tells_what_the_compilers_does(
    seed: int, options: list[str], tmp_path: Path
) -> None:
    print(f"seed {seed}")
    assembly = []
    for number, text in enumerate(program(seed)):
        source = tmp_path / f"file{number}.c"
        source.write_text(text)
        assembly.append(source.with_suffix(".s"))
        subprocess.run(["avr-gcc", *FLAGS, *options, "-o", assembly[-1], source], check=True)
    shrunk = tmp_path / "image.s"
    subprocess.run(
        [sys.executable, "-m", "shrink", "--root", tmp_path, "--output", shrunk, *assembly],
        check=True,
        cwd=TOOLS,
    )
    before, after = link(tmp_path / "plain.elf", *assembly), link(tmp_path / "shrunk.elf", shrunk)
    assert after < before
    expected = told(tmp_path / "plain.elf")
    assert len(expected) > 100
    assert told(tmp_path / "shrunk.elf") == expected
