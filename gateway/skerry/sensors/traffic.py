"""What rows of sources have been like so far, as far as planners and people ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from skerry.planner.model.source_plans import Term
from skerry.sensors.definitions import SensorTable


@dataclass(frozen=True)
class SourceSeen:
    """Of one source: rows, rows in a second that came of late, the same of the rows' own times (None: not known yet), rows left out."""

    rows: int
    rows_per_s: float
    rate: float | None
    errors: int


@dataclass(frozen=True)
class Seen:
    """Of a table: rows so far, rows in a second of late, rows that were left out; by column of the log the least
    value and the greatest, and bytes of a value in memory; and by tuple its source."""

    rows: int = 0
    rows_per_s: float = 0.0
    errors: int = 0
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    widths: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[int, SourceSeen] = field(default_factory=dict)


@dataclass(frozen=True)
class Traffic:
    """Of some sources of a table together. ``rate``: rows in a second of the rows' own times, of those of which that is known; ``unknown``:
    how many others there are; ``widths``: bytes of a value in memory, by column of the log."""

    rate: float
    unknown: int
    widths: Mapping[str, float] = field(default_factory=dict)


#: Of the sources of a table that a condition on static columns selects.
TrafficOf = Callable[[SensorTable, Term | None], Traffic]
