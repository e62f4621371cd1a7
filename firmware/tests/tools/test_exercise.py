"""docs/firmware.md's exercise for a newcomer: applied to a copy as the page says, it builds, and takes as many files and lines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

PROJECT = Path(__file__).resolve().parents[3]
_, _, EXERCISE = (PROJECT / "docs" / "firmware.md").read_text().partition("\n## A newcomer's exercise\n")
EXERCISE = EXERCISE.partition("\n## ")[0]
#: A file's name, what is said behind it, and a block of what it gets.
BLOCK = re.compile(r"^`([\w/.]+)`[^\n]*:\n\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| \[([\w ]+)\]\(#[\w-]+\) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
#: What must be in the image of all but the attribute, a case of a switch, which does not compile without it.
SYMBOLS = {"command_all_off", "aggregate_bits", "clause_indicate", "battery"}


@dataclass(frozen=True)
class Block:
    """A new file, or lines that one gets behind others."""

    file: str
    new: bool
    text: str

    @property
    def added(self) -> int:
        """Lines."""
        return len([line for line in self.text.splitlines() if self.new or line.startswith("+")])

    def apply(self, folder: Path) -> None:
        """To a copy. A line of context is the beginning of one in the file."""
        path = folder / self.file
        if self.new:
            assert not path.exists(), self.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text)
            return
        lines, at = path.read_text().splitlines(), 0
        for line in self.text.splitlines():
            if line.startswith("+"):
                lines.insert(at, line[1:])
                at += 1
                continue
            (found,) = (i for i, other in enumerate(lines) if other.startswith(line[1:]))
            at = found + 1
        path.write_text("\n".join(lines) + "\n")


def additions() -> Iterator[tuple[str, list[Block]]]:
    """Each by its heading."""
    for section in re.split(r"^### ", EXERCISE, flags=re.MULTILINE)[1:]:
        name = section.partition("\n")[0]
        yield name, [Block(file, kind != "diff", text) for file, kind, text in BLOCK.findall(section)]


def test_the_page_counts_files_and_lines() -> None:
    told = {name: tuple(map(int, counts)) for name, *counts in ROW.findall(EXERCISE)}
    assert told == {
        name.lower(): (len(blocks), sum(b.added for b in blocks), sum(b.new for b in blocks))
        for name, blocks in additions()
    }
    assert len(told) == 5


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project as far as an image needs it, with all additions."""
    folder = tmp_path_factory.mktemp("exercise")
    ignored = shutil.ignore_patterns("tests", "__pycache__")
    for part in ("firmware", "protocol"):
        shutil.copytree(PROJECT / part, folder / part, ignore=ignored)
    for _, blocks in additions():
        for block in blocks:
            block.apply(folder)
    return folder


def run(copy: Path, *command: str) -> str:
    """In the copy, with its packets."""
    done = subprocess.run(
        command, cwd=copy / "firmware", capture_output=True, text=True, check=False,
        env={**os.environ, "MAKEFLAGS": "", "PYTHONPATH": str(copy / "protocol")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_additions_keep_the_layers(copy: Path) -> None:
    assert run(copy, sys.executable, "tools/layers.py") == ""


@pytest.mark.slow
def test_the_additions_are_in_the_image(copy: Path) -> None:
    run(copy, sys.executable, "-m", "skerry_protocol.wire_header", "include/wire.h")
    said = run(copy, "make", "-j", "3", "image", "BOARD=relay", f"PYTHON={sys.executable}")
    assert re.search(r"^RAM: \d+ of \d+ bytes with the stack$", said, re.MULTILINE)
    with (copy / "build" / "firmware" / "relay.elf").open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        assert {symbol.name for symbol in table.iter_symbols()} >= SYMBOLS
