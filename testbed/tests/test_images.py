"""Images that a board cannot run are refused in one line that names the file and the reason."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from skerry_testbed.built import BUILD
from skerry_testbed.core import World
from skerry_testbed.errors import TestbedError
from skerry_testbed.network import NetworkError, load

IMAGES = {board: BUILD / "firmware" / f"{board}.elf" for board in ("iris", "cc2538")}


pytestmark = pytest.mark.usefixtures("skerry_built")


def reason(board: str, elf: Path) -> str:
    """Why a board does not take a file, or nothing."""
    try:
        World(seed=1).add_mote(1, board, elf, b"", clock_ppm=0, supply_mv=3000, boot_ns=0)
    except TestbedError as error:
        return str(error)
    return ""


def refused(board: str, elf: Path) -> str:
    """Why a board does not take a file, in one line."""
    text = reason(board, elf)
    assert "\n" not in text
    assert text.startswith(f"{elf}: ")
    return text


@pytest.mark.parametrize(
    ("board", "other", "machine"), [("iris", "cc2538", "AVR"), ("cc2538", "iris", "ARM")]
)
def test_an_image_of_another_board(board: str, other: str, machine: str) -> None:
    assert re.search(rf"made for machine \d+, the \w+ mote needs {machine}", refused(board, IMAGES[other]))


@pytest.mark.parametrize("board", IMAGES)
def test_a_file_that_is_no_elf(tmp_path: Path, board: str) -> None:
    text = tmp_path / "notes.elf"
    text.write_text("not an image")
    assert "not an ELF file" in refused(board, text)
    (tmp_path / "empty.elf").touch()
    assert "not an ELF file" in refused(board, tmp_path / "empty.elf")
    assert "cannot be opened" in refused(board, tmp_path / "missing.elf")


@pytest.mark.parametrize("board", IMAGES)
@pytest.mark.parametrize("share", [0.01, 0.3, 0.7, 0.99])
def test_a_file_that_was_cut_off(tmp_path: Path, board: str, share: float) -> None:
    """Within what is loaded: debugging information, which follows it, is not missed."""
    data = IMAGES[board].read_bytes()
    with IMAGES[board].open("rb") as file:
        loaded = max(
            segment["p_offset"] + segment["p_filesz"] for segment in ELFFile(file).iter_segments("PT_LOAD")
        )
    cut = tmp_path / "cut.elf"
    cut.write_bytes(data[: max(60, int(loaded * share))])
    assert "corrupt ELF: " in refused(board, cut)


@pytest.mark.parametrize("board", IMAGES)
def test_any_byte_of_the_headers_may_be_wrong(tmp_path: Path, board: str) -> None:
    """Whatever the headers say, loading ends in a mote or in a refusal."""
    data = IMAGES[board].read_bytes()
    broken = tmp_path / "broken.elf"
    for at in range(0, 52 + 4 * 32):
        for value in (0x00, 0x7F, 0xFF):
            broken.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            assert reason(board, broken) == "" or str(broken) in reason(board, broken)


TOO_LARGE = {
    "iris": (["avr-gcc", "-mmcu=atmega2560", "-nostartfiles", "-Wl,-e,main"], "needs flash up to"),
    "cc2538": (
        [
            "arm-none-eabi-gcc",
            "-mcpu=cortex-m3",
            "-mthumb",
            "-nostdlib",
            "-Wl,-e,main",
            "-Wl,-Ttext=0x200000",
        ],
        "loads to",
    ),
}


@pytest.mark.parametrize("board", TOO_LARGE)
def test_an_image_that_is_too_large_for_the_chip(tmp_path: Path, board: str) -> None:
    compiler, says = TOO_LARGE[board]
    source, elf = tmp_path / "large.c", tmp_path / "large.elf"
    size = 140_000 if board == "iris" else 530_000
    table = f'asm(".section .text\\n.space {size}, 0x55\\n");'
    source.write_text(f"{table}\nint main(void) {{ for (;;) {{}} }}\n")
    subprocess.run([*compiler, "-O1", "-o", str(elf), str(source)], check=True)
    assert says in refused(board, elf)


def test_more_ram_than_the_chip_has(tmp_path: Path) -> None:
    source, elf = tmp_path / "ram.c", tmp_path / "ram.elf"
    source.write_text("static volatile char kept[40000]; int main(void) { kept[1] = 1; for (;;) {} }\n")
    subprocess.run(
        ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-nostdlib", "-Wl,-e,main", "-Wl,-Ttext=0x200000", "-Wl,-Tbss=0x20000000",
         "-o", str(elf), str(source)], check=True,
    )  # fmt: skip
    assert "needs RAM up to 0x20009c40, the CC2538 has 32768 bytes" in refused("cc2538", elf)


def test_an_unknown_board_in_a_description_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text('[[mote]]\nid = 1\nx = 0\ny = 0\nroot = true\nboard = "mica2"\n')
    with pytest.raises(
        NetworkError, match=r"network\.toml: mote 1: board = 'mica2': expected a known board: cc2538, iris"
    ):
        load(path)
    path.write_text('[firmware]\nmica2 = "x.elf"\n[[mote]]\nid = 1\nx = 0\ny = 0\nroot = true\n')
    with pytest.raises(
        NetworkError, match=r"network\.toml: firmware = 'mica2': expected a known board: cc2538, iris"
    ):
        load(path)
