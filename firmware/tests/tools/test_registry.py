"""The table of commands and aggregates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REGISTRY = Path(__file__).parents[2] / "tools" / "registry.py"


def registry(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REGISTRY), str(folder / "registry.c"), "--extensions", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_an_aggregate_named_like_one_of_the_firmware_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "sum.c").write_text("AGGREGATE(sum, 16, 1, 0, SUMMARY)\n")
    done = registry(tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"{tmp_path}/sum.c: AGGREGATE(sum, 16): the firmware has one of its own of this name: give it another\n"
    )


def test_an_aggregate_of_another_name_is_in_the_table(tmp_path: Path) -> None:
    (tmp_path / "product.c").write_text("AGGREGATE(product, 16, 1, 0, SUMMARY)\n")
    done = registry(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "case 16: return &aggregate_product;" in (tmp_path / "registry.c").read_text()
