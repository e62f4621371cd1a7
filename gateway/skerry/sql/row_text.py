"""A row's values as text: for feeds, for the command line, for whoever reads JSON by its standard."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def json_text(value: Any) -> str:
    """A row, or one of its values, on one line of JSON (RFC 8259). That has no NaN and no infinity: they are null, as browsers write
    them. Moments are as :func:`moment_text` has them. Raises TypeError for what is none of JSON's and no moment."""
    try:
        return json.dumps(value, default=moment_text, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), default=moment_text, allow_nan=False)


def moment_text(moment: object) -> str:
    """ISO 8601 in UTC, to the millisecond or, where there is more, to the microsecond: 2026-11-27T03:35:06.250Z. Raises TypeError for
    what is no moment, and is what JSON has no form for."""
    if not isinstance(moment, datetime):
        raise TypeError(f"{type(moment).__name__} is no moment")
    places = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return moment.astimezone(UTC).isoformat(timespec=places).replace("+00:00", "Z")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
