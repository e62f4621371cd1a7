"""The firmware's structs decode and encode the golden vectors of protocol/vectors."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firmware.tests.query import host

HERE = Path(__file__).resolve().parent
VECTORS = host.FIRMWARE.parent / "protocol" / "vectors"
#: Vector file → kind that golden.c knows.
KINDS = {
    "packets": "packet",
    "lines": "line",
    "mac": "mac_header",
    "programs": "query_program",
    "settings": "settings",
}
#: A MAC frame ends with its check sequence, which the radio chip makes and takes.
FCS_DIGITS = 4
CASES = [
    (kind, v) for file, kind in KINDS.items() for v in json.loads((VECTORS / f"{file}.json").read_text())
]


@pytest.fixture(scope="session")
def golden() -> Path:
    """The C program that reads and writes packets through wire.h."""
    sources = (HERE / "golden.c", *(host.FIRMWARE / "lib").glob("c*.c"))
    return host.build("golden", sources, host.SANITIZERS)


def flatten(fields: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Fields as golden.c names them."""
    for name, value in fields.items():
        if isinstance(value, list):
            for index, element in enumerate(value):
                if isinstance(element, dict):
                    yield from flatten(element, f"{prefix}{name}.{index}.")
                else:
                    yield f"{prefix}{name}[{index}]", str(element)
        else:
            yield prefix + name, str(value)


def ask(program: Path, line: str) -> str:
    """The program's answer to one line."""
    result = subprocess.run([program], input=line + "\n", capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize(("kind", "vector"), CASES, ids=[f"{kind}: {v['name']}" for kind, v in CASES])
def test_c_reads_and_writes_the_golden_bytes(golden: Path, kind: str, vector: dict[str, Any]) -> None:
    data = vector["hex"][:-FCS_DIGITS] if kind == "mac_header" else vector["hex"]
    fields = dict(flatten(vector["meaning"]))
    decoded = dict(pair.split("=") for pair in ask(golden, f"decode {kind} {data}").split())
    assert decoded == fields
    line = " ".join(f"{name}={value}" for name, value in fields.items())
    assert ask(golden, f"encode {kind} {line}") == data
