"""Of each invariant a mote can say only that it was broken: it stands in one place, or that would not tell where."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from skerry_protocol.codes import Invariant

FIRMWARE = Path(__file__).resolve().parent.parent.parent
FOLDERS = ("lib", "kernel", "drivers", "boards", "commands", "net", "query")


def test_each_invariant_stands_in_one_place() -> None:
    found: Counter[str] = Counter()
    for folder in FOLDERS:
        for path in (FIRMWARE / folder).rglob("*.c"):
            text = path.read_text()
            found.update(re.findall(r"INVARIANT\([^;]*,\s*(\w+)\);", text))
            found.update(re.findall(r"\bWIRE_INVARIANT_(\w+)", text))
    # A hang is noticed by a handler on one board and by the next start on the other.
    assert found == Counter(Invariant.__members__.keys()) + Counter(["MAIN_LOOP"])
