"""Flash and RAM of the mote images."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from bench.machine import table

PROJECT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Print the table."""
    out = subprocess.run(
        ["make", "--no-print-directory", "-C", str(PROJECT / "firmware"), f"PYTHON={sys.executable}"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    rows = []
    for board, name in (("iris", "IRIS"), ("cc2538", "CC2538")):
        part = out[out.index(f"{board}.elf") :]
        for memory, what in (("flash", "flash"), ("RAM", "static RAM with worst-case stack")):
            found = re.search(rf"^{memory}: (\d+) of (\d+) bytes", part, re.MULTILINE)
            assert found, part
            rows.append((f"{what}, {name}", f"{int(found[1]):,} bytes", f"{int(found[2]):,}"))
    table("Firmware", rows)


if __name__ == "__main__":
    main()
