"""Flash and RAM of the mote image."""

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
    size = {name: int(value) for name, value in re.findall(r"^(flash|RAM) +(\d+)", out, re.MULTILINE)}
    rows = [
        ("flash, IRIS", f"{size['flash']:,} bytes", "40,960"),
        ("static RAM with worst-case stack, IRIS", f"{size['RAM']:,} bytes", "7,168"),
    ]
    table("Firmware", rows)


if __name__ == "__main__":
    main()
