"""Durations as people write them."""

from __future__ import annotations

import math
import re

from skerry.sql.units import time_of

#: 300 years: virtual time is counted in ns, in 64 bits.
MAXIMUM_S = 1e10


def seconds(text: str | float) -> float:
    """``"90s"``, ``"10 min"``, ``"500ms"`` or a number of seconds. Raises ValueError naming the text."""
    if isinstance(text, (int, float)):
        # Not as a float at once: a whole number may be larger than any.
        value = float(text) if 0 <= text <= MAXIMUM_S else math.nan
    else:
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-zA-Z]*)\s*", text)
        unit_ms = time_of(match[2] or "s") if match else None
        if match is None or unit_ms is None:
            raise ValueError(
                f"duration {text!r}: expected a number and ms, s, min, h, day or week, as in '10 min'"
            )
        value = float(match[1]) * unit_ms / 1000
    if not 0 <= value <= MAXIMUM_S:
        raise ValueError(f"duration {text!r}: expected 0 to {MAXIMUM_S:.0f} s, which is 300 years")
    return value
