"""Durations as people write them."""

from __future__ import annotations

import math
import re

#: By each of their names, which are those of the query language.
_UNITS = {
    name: length
    for names, length in (
        ("ms millisecond milliseconds", 1e-3),
        ("s sec secs second seconds", 1.0),
        ("min mins minute minutes", 60.0),
        ("h hour hours", 3600.0),
        ("d day days", 86400.0),
        ("w week weeks", 604800.0),
    )
    for name in names.split()
}

#: 300 years: virtual time is counted in ns, in 64 bits.
MAXIMUM_S = 1e10


def seconds(text: str | float) -> float:
    """``"90s"``, ``"10 min"``, ``"500ms"`` or a number of seconds. Raises ValueError naming the text."""
    if isinstance(text, (int, float)):
        # Not as a float at once: a whole number may be larger than any.
        value = float(text) if 0 <= text <= MAXIMUM_S else math.nan
    else:
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*", text.lower())
        if not match or (match[2] or "s") not in _UNITS:
            raise ValueError(
                f"duration {text!r}: expected a number and ms, s, min, h, day or week, as in '10 min'"
            )
        value = float(match[1]) * _UNITS[match[2] or "s"]
    if not 0 <= value <= MAXIMUM_S:
        raise ValueError(f"duration {text!r}: expected 0 to {MAXIMUM_S:.0f} s, which is 300 years")
    return value
