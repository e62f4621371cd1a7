"""The emulated ATmega1281: what the testbed executes by itself is what simavr would have, to the cycle and to the bit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from skerry_testbed import built
from skerry_testbed.built import PROJECT
from skerry_testbed.pytest import MakeNetwork, NetworkHandle, disc, grid
from skerry_testbed.queries import ask

CORE = PROJECT / "testbed" / "core"
SOURCES = Path(__file__).parent / "avr"


def compile_c(target: Path, *arguments: object) -> Path:
    """By the compiler, the warnings and the libraries that the back-end is made with."""
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{CORE}/include", f"-I{CORE}/avr"]
    libraries = ["-lsimavr", "-lelf", "-lm"]
    subprocess.run(["cc", *flags, *map(str, arguments), "-o", str(target), *libraries], check=True)
    return target


@pytest.mark.parametrize("seed", [1, 2])
def test_drawn_programs_do_what_they_do_in_simavr(seed: int, tmp_path: Path) -> None:
    """All instructions, waits in loops among them, with registers that have their own mind and interrupts that become due."""
    own = [CORE / "avr" / name for name in ("execute.c", "decode.c", "image.c")]
    program = compile_c(tmp_path / "compare", SOURCES / "compare.c", *own)
    done = subprocess.run([program, str(seed), "40000"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split()[0]) > 4_000


def run_of(network: MakeNetwork) -> tuple[NetworkHandle, list[object]]:
    """A network with lossy links, a query, a power cycle and a loss; and all that is measured at its motes."""
    net = network(grid(3, 3, spacing=10), radio=disc(15, reception=0.85), seed=11)
    net.advance("15s")
    ask(net, 1, "SELECT temp, light, voltage FROM sensors SAMPLE PERIOD 2 s")
    net.advance("10s")
    net.inject(kind="reboot", mote=4)
    net.inject(kind="kill", mote=5)
    net.advance("15s")
    world = net.bed.world
    indices = [mote.index for mote in net.motes.values()]
    return net, [(world.energy(index), world.counters(index), world.eeprom(index, 4096)) for index in indices]


def test_a_network_does_what_it_does_in_simavr(
    network: MakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each frame at its nanosecond, each mote's times awake and asleep."""
    own, measured = run_of(network)
    (tmp_path / "testbed").mkdir()
    for name in ("core", "arm"):
        (tmp_path / "testbed" / built.library(name).name).symlink_to(built.library(name))
    (tmp_path / "firmware").symlink_to(built.BUILD / "firmware")
    rest = [path for path in (CORE / "avr").glob("*.c") if path.name != "execute.c"]
    library = tmp_path / "testbed" / built.library("avr").name
    compile_c(library, "-fPIC", "-shared", SOURCES / "by_simavr.c", *rest)
    monkeypatch.setattr(built, "BUILD", tmp_path)
    other, by_simavr = run_of(network)
    assert len(own.frames) > 300
    assert own.frames == other.frames
    assert measured == by_simavr
    assert own.report() == other.report()
