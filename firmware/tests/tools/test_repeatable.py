"""An image is the same wherever it is built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FIRMWARE = Path(__file__).resolve().parent.parent.parent


def built(folder: Path, board: str) -> bytes:
    """The hex file of a copy of the firmware in a folder."""
    copy = folder / "firmware"
    shutil.copytree(FIRMWARE, copy, ignore=shutil.ignore_patterns("tests", "__pycache__"), dirs_exist_ok=True)
    subprocess.run(
        ["make", "-j", "3", "image", f"BOARD={board}", f"PYTHON={sys.executable}"],
        cwd=copy, check=True, capture_output=True, env={**os.environ, "MAKEFLAGS": ""},
    )  # fmt: skip
    return (folder / "build" / "firmware" / f"{board}.hex").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("board", ["iris", "cc2538"])
def test_a_build_in_another_folder_is_equal_to_the_one_here(board: str, tmp_path: Path) -> None:
    deeper = tmp_path / "a folder" / "and one below"
    deeper.mkdir(parents=True)
    here = (FIRMWARE.parent / "build" / "firmware" / f"{board}.hex").read_bytes()
    assert len(here) > 100_000
    assert built(deeper, board) == here
