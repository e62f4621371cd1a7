"""Programs a real mote: its image and its own settings, with an existing tool for its chip. ``--dry-run`` only prints the commands."""

from __future__ import annotations

import argparse
import math
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from settings import METRES_MAXIMUM, channels_of

BUILD = Path(__file__).resolve().parent.parent.parent / "build" / "firmware"
SETTINGS = Path(__file__).with_name("settings.py")
#: First of the CC2538's two settings pages; firmware/drivers/cc2538/settings.c.
CC2538_SETTINGS = 0x0027F000

Command = list[str]


class FlashError(Exception):
    """It cannot be done; one line says what is wrong and what would be right."""


def _settings(options: argparse.Namespace, path: Path) -> Command:
    values = [
        "--id",
        options.id,
        "--root",
        options.root,
        f"--x={options.x}",
        f"--y={options.y}",
        *(["--channel", options.channel] if options.channel else []),
        *(["--channels", options.channels] if options.channels else []),
    ]
    return [sys.executable, str(SETTINGS), *values, str(path)]


def iris(options: argparse.Namespace) -> list[Command]:
    """Flash and EEPROM by avrdude, through a programmer such as the MIB520."""
    settings, image = BUILD / f"iris-{options.id}.settings.hex", BUILD / "iris.hex"
    return [
        _settings(options, settings),
        [
            "avrdude", "-p", "atmega1281", "-c", options.programmer, "-P", options.port,
            "-U", f"flash:w:{image}:i", "-U", f"eeprom:w:{settings}:i",
        ],
    ]  # fmt: skip


def cc2538(options: argparse.Namespace) -> list[Command]:
    """Flash with a page of settings, through the serial boot loader in the chip's ROM (SWRU319C, chapter 10)."""
    settings, image = BUILD / f"cc2538-{options.id}.settings.bin", BUILD / f"cc2538-{options.id}.hex"
    return [
        _settings(options, settings),
        [
            "arm-none-eabi-objcopy", "-O", "ihex", "--add-section", f".settings={settings}",
            "--set-section-flags", ".settings=alloc,load,contents", "--change-section-address", f".settings={CC2538_SETTINGS:#010x}",
            str(BUILD / "cc2538.elf"), str(image),
        ],
        ["cc2538-bsl", "-p", options.port, "-e", "-w", "-v", str(image)],
    ]  # fmt: skip


@dataclass(frozen=True)
class Board:
    """How a board is programmed, with what, and where that tool comes from."""

    commands: Callable[[argparse.Namespace], list[Command]]
    tool: str
    source: str


BOARDS = {
    "iris": Board(iris, "avrdude", "apt-get install avrdude"),
    "cc2538": Board(cc2538, "cc2538-bsl", "pip install git+https://github.com/JelmerT/cc2538-bsl"),
}


def _check_metres(name: str, text: str) -> None:
    try:
        metres = float(text)
    except ValueError:
        metres = math.inf
    if not abs(metres) <= METRES_MAXIMUM:
        raise FlashError(f"{name}={text}: expected a position in m, within {METRES_MAXIMUM:,}")


def check(options: argparse.Namespace) -> Board:
    """What is asked for. Raises FlashError."""
    if options.board not in BOARDS:
        raise FlashError(f"BOARD={options.board} is unknown: known are {', '.join(sorted(BOARDS))}")
    if not (options.id.isdecimal() and 0 <= int(options.id) <= 65533):
        raise FlashError(f"ID={options.id}: expected a short address, 0..65533")
    if options.root not in ("0", "1"):
        raise FlashError(f"ROOT={options.root}: expected 1, for the mote on the gateway's serial line, or 0")
    for name, wanted in (("port", "a serial port"), ("programmer", "avrdude's name of it")):
        if not getattr(options, name):
            raise FlashError(f"{name.upper()}=: expected {wanted}")
    if options.channel and not (options.channel.isdecimal() and 11 <= int(options.channel) <= 26):
        raise FlashError(f"CHANNEL={options.channel}: expected 11..26")
    try:
        channels_of(options.channels or "none")
    except argparse.ArgumentTypeError as error:
        raise FlashError(f"CHANNELS={options.channels}: {error}") from None
    for name in ("x", "y"):
        _check_metres(name.upper(), getattr(options, name))
    board, image = BOARDS[options.board], BUILD / f"{options.board}.elf"
    if not image.exists():
        raise FlashError(f"{image} is missing: run 'make firmware'")
    if options.dry_run:
        return board
    if not shutil.which(board.tool):
        raise FlashError(f"{board.tool} is not installed: {board.source}")
    if options.port.startswith("/dev/") and not Path(options.port).exists():
        raise FlashError(f"PORT={options.port} does not exist: is the mote, or its programmer, connected?")
    return board


def main() -> int:
    """Command line. What is wrong with a value is said by its variable's name: make gives them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--board", required=True, help=", ".join(sorted(BOARDS)))
    parser.add_argument("--port", required=True, help="serial port of the programmer or of the mote")
    parser.add_argument("--id", required=True, help="short address, 0..65533")
    parser.add_argument("--root", default="0", help="1: stays on the gateway's serial line")
    parser.add_argument("--x", default="0", help="position in m, east")
    parser.add_argument("--y", default="0", help="position in m, north")
    parser.add_argument("--channel", help="see settings.py")
    parser.add_argument("--channels", help="see settings.py")
    parser.add_argument(
        "--programmer", default="stk500", help="avrdude's name of it: MIB520 and the like are stk500"
    )
    parser.add_argument("--dry-run", action="store_true", help="only print the commands")
    options = parser.parse_args()
    try:
        commands = check(options).commands(options)
        for command in commands:
            print(shlex.join(command), flush=True)
            if not options.dry_run:
                subprocess.run(command, check=True)
    except FlashError as error:
        print(f"flash: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"flash: {error.cmd[0]} ended with {error.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
