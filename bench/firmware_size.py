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
    for board, name, flash, ram in (("iris", "IRIS", 59392, 7680), ("cc2538", "CC2538", 59392, 12288)):
        part = out[out.index(f"{board}.elf") :]
        size = dict(re.findall(r"^(flash|RAM) +(\d+)", part, re.MULTILINE)[:2])
        rows += [
            (f"flash, {name}", f"{int(size['flash']):,} bytes", f"{flash:,}"),
            (f"static RAM with worst-case stack, {name}", f"{int(size['RAM']):,} bytes", f"{ram:,}"),
        ]
    table("Firmware", rows)


if __name__ == "__main__":
    main()
