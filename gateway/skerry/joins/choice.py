"""Which algorithm runs a join, and why, for ``explain``; a hint overrides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from skerry.joins.group import key_kinds
from skerry.joins.join import Join, JoinError
from skerry.joins.rows import Algorithm
from skerry.joins.windows import UNBOUNDED

#: Of so few rows of a stream in reach all are looked at as fast as they are kept sorted.
FEW_ROWS = 64
#: What a row takes in memory beside its fields: time, number, source, key, passes.
ROW_BYTES = 40


@dataclass(frozen=True)
class Choice:
    """An algorithm, and the sentence that says why."""

    algorithm: Algorithm
    reason: str


def choose(
    join: Join, schemas: Mapping[str, pa.Schema], rates: Mapping[str, float], hint: Algorithm | None = None
) -> Choice:
    """``rates``: rows/s of each stream, as far as they are known. Raises JoinError: the hint cannot be followed."""
    keyed = bool(key_kinds(join, schemas))
    if hint == "HW" and not keyed:
        raise JoinError(
            "HW needs an equality over all streams, such as a.item = b.item AND b.item = c.item: leave the hint out, or say MW or NLW"
        )
    if hint is not None:
        return Choice(hint, f"{hint}, as asked for")
    if keyed:
        columns = " = ".join(f"{alias}.{names[0]}" for alias, names in join.key.items())
        return Choice("HW", f"HW, as {columns} over all streams: rows meet by key")
    kept = {alias: rows for alias, rows in expected_rows(join, rates).items() if rows is not None}
    if len(kept) == len(join.aliases) and max(kept.values()) <= FEW_ROWS:
        return Choice(
            "NLW",
            f"NLW, as no equality is over all streams and at most {max(kept.values()):.0f} rows of each are kept",
        )
    return Choice(
        "MW",
        "MW, as no equality is over all streams: rows are kept by time, and those in the window are looked at",
    )


def expected_rows(join: Join, rates: Mapping[str, float]) -> dict[str, float | None]:
    """By alias about how many rows are kept of it; None: its stream's rate is not known, or the window is one of rows."""
    found: dict[str, float | None] = {}
    for place, (alias, stream) in enumerate(join.streams.items()):
        reach = join.graph.retention(place)
        known = stream in rates and reach < UNBOUNDED
        found[alias] = rates[stream] * (reach + join.lateness_us) / 1e6 if known else None
    return found


def check_limit(join: Join, rates: Mapping[str, float], widths: Mapping[str, int], limit_bytes: int) -> None:
    """Raises JoinError where windows would keep more than a limit. ``widths``: bytes of the fields of a row of each stream."""
    rows = expected_rows(join, rates)
    sizes = {
        alias: count * (ROW_BYTES + widths.get(join.streams[alias], 0))
        for alias, count in rows.items()
        if count
    }
    total = sum(sizes.values())
    if total > limit_bytes:
        largest = max(sizes, key=lambda alias: sizes[alias])
        raise JoinError(
            f"the windows would keep about {total:,.0f} bytes, more than the limit of {limit_bytes:,}: {largest} alone "
            f"{rows[largest] or 0:,.0f} rows. Choose windows or a LATENESS of about {limit_bytes / total:.0%} of "
            "these, or conditions that fewer rows pass"
        )
