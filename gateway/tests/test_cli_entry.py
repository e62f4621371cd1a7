"""The ``skerry`` command as a process."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
