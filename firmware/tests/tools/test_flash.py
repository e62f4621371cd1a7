"""``make flash``: what it would run, that this makes the right image, and one line for what cannot be."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from skerry_protocol.settings import Settings

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
BUILD = PROJECT / "build" / "firmware"


def flash(**variables: object) -> subprocess.CompletedProcess[str]:
    given = [f"{name}={value}" for name, value in variables.items()]
    return subprocess.run(
        ["make", "-s", "flash", *given], cwd=PROJECT, capture_output=True, text=True, check=False
    )


def intel_hex(path: Path) -> dict[int, int]:
    """Bytes of an Intel hex file by address."""
    found, base = {}, 0
    for line in path.read_text().split():
        record = bytes.fromhex(line[1:])
        assert sum(record) & 0xFF == 0
        at, kind, data = int.from_bytes(record[1:3], "big"), record[3], record[4:-1]
        if kind == 4:
            base = int.from_bytes(data, "big") << 16
        elif kind == 2:
            base = int.from_bytes(data, "big") << 4
        elif kind == 0:
            found |= {base + at + i: byte for i, byte in enumerate(data)}
    return found


def test_iris_is_programmed_by_avrdude_with_settings_in_eeprom() -> None:
    done = flash(BOARD="iris", PORT="/dev/ttyUSB3", ID=7, ROOT=1, X=2.5, Y=-1, DRY_RUN=1)
    assert done.returncode == 0, done.stderr
    settings, program = [shlex.split(line) for line in done.stdout.splitlines()]
    assert program[:7] == ["avrdude", "-p", "atmega1281", "-c", "stk500", "-P", "/dev/ttyUSB3"]
    assert program[8] == f"flash:w:{BUILD}/iris.hex:i"
    assert program[10] == f"eeprom:w:{settings[-1]}:i"
    subprocess.run(settings, cwd="/", check=True)
    eeprom = intel_hex(Path(settings[-1]))
    own = Settings.parse(bytes(eeprom[at] for at in range(Settings.sizeof())))
    assert (own.nodeid, own.root, own.x, own.y, own.boots) == (7, 1, 250, -100, 0)


def test_cc2538_is_programmed_through_its_boot_loader_with_settings_in_flash() -> None:
    done = flash(BOARD="cc2538", PORT="/dev/ttyUSB1", ID=300, X=12, DRY_RUN=1)
    assert done.returncode == 0, done.stderr
    settings, merge, program = [shlex.split(line) for line in done.stdout.splitlines()]
    assert program == ["cc2538-bsl", "-p", "/dev/ttyUSB1", "-e", "-w", "-v", merge[-1]]
    for command in (settings, merge):
        subprocess.run(command, cwd="/", check=True)
    flashed = intel_hex(Path(merge[-1]))
    own = Settings.parse(bytes(flashed[0x27F000 + at] for at in range(Settings.sizeof())))
    assert (own.nodeid, own.root, own.x) == (300, 0, 1200)
    word = {
        at: int.from_bytes(bytes(flashed[at + i] for i in range(4)), "little")
        for at in (0x200000, 0x27FFD4, 0x27FFD8, 0x27FFDC)
    }
    assert word[0x200000] == 0x20008000, "the top of the stack"
    assert word[0x27FFD4] == 0xF3FFFFFF, "the boot loader can be entered again"
    assert word[0x27FFD8] == 0, "the image is valid"
    assert word[0x27FFDC] == 0x200000, "and begins there"


def test_a_position_keeps_its_centimetres() -> None:
    done = flash(BOARD="iris", PORT="/dev/ttyUSB3", ID=7, X=12345.67, Y=-1234567.89, DRY_RUN=1)
    assert "--x=12345.67 --y=-1234567.89" in done.stdout


def test_nothing_is_programmed_in_a_dry_run() -> None:
    for path in BUILD.glob("*-4711.*"):
        path.unlink()
    assert flash(BOARD="cc2538", PORT="/dev/null", ID=4711, DRY_RUN=1).returncode == 0
    assert not list(BUILD.glob("*-4711.*"))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"BOARD": "mica2", "ID": 1}, "board 'mica2' is unknown: known are cc2538 iris"),
        ({"BOARD": "iris", "ID": 65534}, "flash: ID=65534: expected a short address, 0..65533"),
        ({"BOARD": "cc2538", "ID": -1}, "flash: ID=-1: expected a short address, 0..65533"),
        ({"CHANNEL": 3}, "flash: CHANNEL=3: expected 11..26"),
        ({"CHANNELS": "15,2"}, "flash: CHANNELS=15,2: channel '2': 11..26, several with commas"),
        ({"ID": "seven"}, "flash: ID=seven: expected a short address, 0..65533"),
        ({"ID": ""}, "flash: ID=: expected a short address, 0..65533"),
        ({"ROOT": "yes"}, "flash: ROOT=yes: expected 1, for the mote on the gateway's serial line, or 0"),
        ({"PROGRAMMER": ""}, "flash: PROGRAMMER=: expected avrdude's name of it"),
        ({"X": "12,5"}, "flash: X=12,5: expected a position in m, within 20,000,000"),
        ({"X": 3e7}, "flash: X=30000000.0: expected a position in m, within 20,000,000"),
        ({"Y": "nan"}, "flash: Y=nan: expected a position in m"),
    ],
)
def test_what_cannot_be_is_one_line(given: dict[str, object], says: str) -> None:
    done = flash(PORT="/dev/ttyUSB0", DRY_RUN=1, **given)
    assert done.returncode != 0
    assert [line for line in done.stderr.splitlines() if says in line]


def test_a_port_or_a_tool_that_is_missing_is_named() -> None:
    done = flash(BOARD="iris", PORT="/dev/ttyUSB99", ID=1)
    assert done.returncode != 0
    assert (
        "flash: PORT=/dev/ttyUSB99 does not exist" in done.stderr
        or "flash: avrdude is not installed: " in done.stderr
    )


def channels(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The settings tool with these arguments."""
    tool = PROJECT / "firmware" / "tools" / "settings.py"
    return subprocess.run(
        [sys.executable, tool, "--id", "7", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("given", "mask"),
    [((), 0xC210), (("--channels", "none"), 0), (("--channels", "11,26"), 0x8001), (("--channels", "20"), 0x200)],
)  # fmt: skip
def test_settings_name_the_channels(tmp_path: Path, given: tuple[str, ...], mask: int) -> None:
    path = tmp_path / "settings.bin"
    assert channels(*given, str(path)).returncode == 0
    assert Settings.parse(path.read_bytes()[: Settings.sizeof()]).channels == mask


@pytest.mark.parametrize(
    ("given", "says"),
    [(("--x", "inf"), "x inf: m within"), (("--y=-3e7",), "y -3e+07: m"), (("--pan", "70000"), "pan 70000: 0..65534")],
)  # fmt: skip
def test_settings_that_no_mote_holds_are_one_line(tmp_path: Path, given: tuple[str, ...], says: str) -> None:
    done = channels(*given, str(tmp_path / "settings.bin"))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"settings.py: error: {says}")


@pytest.mark.parametrize("wrong", ["10", "27", "15,", "15 20", "x", "²"])
def test_settings_refuse_what_is_no_channel(tmp_path: Path, wrong: str) -> None:
    done = channels("--channels", wrong, str(tmp_path / "settings.bin"))
    assert done.returncode == 2
    assert "11..26, several with commas between, or none" in done.stderr
