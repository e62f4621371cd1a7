"""The tests in docs/testbed.md pass, in an empty directory outside this tree."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "testbed.md").read_text()


@pytest.mark.usefixtures("skerry_built")
def test_the_tests_on_the_page_pass(tmp_path: Path) -> None:
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", PAGE, re.MULTILINE)
    code = [textwrap.dedent(block) for block in blocks if "def test_" in block]
    (tmp_path / "test_own.py").write_text("\n\n".join(code))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_own.py"]
    ended = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout
    assert f"{PAGE.count('    def test_')} passed" in ended.stdout
