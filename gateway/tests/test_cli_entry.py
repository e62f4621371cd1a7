"""The ``skerry`` command as a process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gateway.tests.process import COMMAND

EARLY = """
import sys

class Pressed:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
from skerry.cli.entry import main
main()
"""


@pytest.mark.parametrize("module", ["skerry.cli.main", "typer", "skerry.cli.show"])
def test_ctrl_c_before_anything_has_begun_is_no_traceback(module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", EARLY, module], check=False, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.parametrize("arguments", [["token", "ada"], ["--help"]])
def test_a_full_disk_under_standard_output_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [COMMAND, *arguments], check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert ended.returncode == 1
    assert ended.stderr == "skerry: standard output: No space left on device\n"


def test_without_a_standard_output_there_is_nothing_to_tell() -> None:
    ended = subprocess.run(
        ["sh", "-c", f"{COMMAND} token ada >&-"], check=False, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")
