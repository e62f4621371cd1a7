"""How long rows are kept."""

from __future__ import annotations

from dataclasses import dataclass

GIGABYTE = 10**9
#: Days and GB that can be asked for: JSON, in which the gateway says how long it keeps them, has no infinite numbers.
KEEP_MAXIMUM = 1_000_000


@dataclass(frozen=True)
class Retention:
    """How long rows are kept: files of the history by the age of their day and by the size of all, the log, from which feeds
    resume, by the age of its segments and by size. Days, and bytes."""

    history_days: float = 365.0
    history_bytes: int = 20 * GIGABYTE
    log_days: float = 2.0
    log_bytes: int = 2 * GIGABYTE
