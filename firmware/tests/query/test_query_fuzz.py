"""Nothing that reaches the query engine makes it fault."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

INPUTS = 2_000_000


@pytest.mark.slow
def test_hostile_input_never_faults(
    fuzzer: Path, drawn_seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random and mutated code, installs and records."""
    print(f"query fuzz, seed {drawn_seed}")  # is all that is known of a run that does not end
    result = subprocess.run(
        [fuzzer, str(INPUTS), str(drawn_seed)], capture_output=True, text=True, check=False
    )
    with capsys.disabled():
        print(f"\nquery fuzz, seed {drawn_seed}: {result.stdout.strip()}")
    assert result.returncode == 0, f"seed {drawn_seed}: {result.stderr}"
    tallies = dict(zip(*[iter(result.stdout.split())] * 2, strict=False))
    assert int(tallies["inputs"]) == INPUTS
    for target in ("code", "install", "merge", "fragment", "row", "tuples"):
        accepted, tried = map(int, tallies[target].split("/"))
        assert 0 < accepted < tried, f"{target}: the fuzzer must reach both sides of every check"
