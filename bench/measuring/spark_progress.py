"""What Spark's progress of a streaming query says."""

from __future__ import annotations

import json


def row_of(offset: object) -> int:
    """The row of an offset of ours: JSON, within JSON where the progress itself is; 0: there is none yet."""
    while isinstance(offset, str):
        offset = json.loads(offset)
    return int(offset["row"]) if isinstance(offset, dict) else 0
