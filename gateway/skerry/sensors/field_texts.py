"""What CREATE SENSORS says of a field in texts: where it is in JSON, and how its times are written."""

from __future__ import annotations

import re
from datetime import datetime

#: How times may be written, besides a pattern of strptime.
TIME_FORMATS = ("iso", "unix s", "unix ms", "unix us")
_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\[(\d+)\]|\['([^']*)'\]")
#: Parts of a pattern that say of which year a time is.
_YEARS = re.compile(r"%[YyGcx]")


def steps(path: str) -> tuple[str | int, ...]:
    """``$.air.level[0]`` → its names and places. Raises ValueError."""
    found, at = list[str | int](), 1
    while path.startswith("$") and at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            break
        name, place, quoted = step.groups()
        found.append(int(place) if place is not None else name if name is not None else quoted)
        at = step.end()
    if not found or at < len(path):
        raise ValueError(f"'{path}' is no path")
    return tuple(found)


def format_of(text: str | None) -> str:
    """How times are written, as fields have it. Raises ValueError."""
    form = (text or "iso").lower()
    if form in TIME_FORMATS:
        return form
    if text is None or "%" not in text:
        raise ValueError(f"unknown format '{text}'")
    try:
        datetime.strptime("", text)
    except (ValueError, re.error) as error:
        # It is read as a pattern, which no empty text is like.
        if not str(error).startswith("time data"):
            raise ValueError(f"'{text}' is no pattern: {error}") from None
    if not _YEARS.search(text.replace("%%", "")):
        raise ValueError(f"'{text}' names no year")
    return text
