"""Which algorithm runs a join, and why, for ``explain``; a hint overrides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from skerry.joins.buckets import BUCKET_BYTES, BUCKETS
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
            "HW needs an equality over all streams, such as a.item = b.item AND b.item = c.item: leave USING out, or write USING MW or "
            "USING NLW"
        )
    if hint == "NLW" and join.has_asof:
        raise JoinError("NLW has rows in no order of time: ASOF JOIN runs by HW or MW")
    if hint is not None:
        return Choice(hint, f"{hint}, as asked for")
    if keyed:
        columns = " = ".join(f"{alias}.{names[0]}" for alias, names in join.key.items())
        return Choice("HW", f"HW, as {columns} over all streams: rows meet by key")
    kept = {alias: rows for alias, rows in expected_rows(join, rates).items() if rows is not None}
    if not join.is_outer and len(kept) == len(join.aliases) and max(kept.values()) <= FEW_ROWS:
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
        reach = join.retention(place)
        known = stream in rates and reach < UNBOUNDED
        found[alias] = rates[stream] * (reach + join.lateness_us) / 1e6 if known else None
    return found


@dataclass(frozen=True)
class Kept:
    """Of an alias: rows in a second, bytes of one, and for how long they are kept, in us, for the windows and for LATENESS."""

    alias: str
    rate: float
    width: float
    window_us: int
    lateness_us: int

    @property
    def rows(self) -> float:
        """About so many are kept."""
        return self.rate * (self.window_us + self.lateness_us) / 1e6

    def bytes(self, us: int) -> float:
        """Of rows of so long."""
        return self.rate * self.width * us / 1e6


def limit_of(join: Join, algorithm: Algorithm) -> int:
    """Bytes that a join may keep: rows that meet by key are in all buckets alike, others mostly in one."""
    return BUCKET_BYTES * (BUCKETS if algorithm == "HW" and not join.graph.has_rows else 1)


def kept_of(join: Join, rates: Mapping[str, float], widths: Mapping[str, float], keyed: bool) -> list[Kept]:
    """What windows keep, as far as rates are known. Rows are kept once for all aliases of one stream and one key. ``widths``: bytes of
    the fields of a row of each stream."""
    found: dict[object, Kept] = {}
    for place, (alias, stream) in enumerate(join.streams.items()):
        reach = join.retention(place)
        if stream not in rates or reach >= UNBOUNDED:
            continue
        pool = stream, join.key[alias] if keyed else ()
        one = Kept(alias, rates[stream], ROW_BYTES + widths.get(stream, 0), reach, join.lateness_us)
        found[pool] = max(found.get(pool, one), one, key=lambda each: each.window_us)
    return list(found.values())


def check_limit(join: Join, kept: Sequence[Kept], limit_bytes: int) -> None:
    """Raises JoinError where windows would keep more than a limit, with what would fit."""
    total = sum(one.bytes(one.window_us + one.lateness_us) for one in kept)
    if total <= limit_bytes:
        return
    most = max(kept, key=lambda one: one.bytes(one.window_us + one.lateness_us))
    for_lateness = sum(one.bytes(one.lateness_us) for one in kept)
    left = limit_bytes - for_lateness
    windows = {window.us for window in join.windows.values() if window.us is not None}
    if left <= 0:
        fits = f"LATENESS {_duration(join.lateness_us * limit_bytes / for_lateness / 2)} would leave room for windows"
    elif len(windows) == 1:
        fits = f"WINDOW = {_duration(windows.pop() * left / (total - for_lateness))} would fit"
    else:
        fits = f"windows of {left / (total - for_lateness):.1%} of these would fit"
    raise JoinError(
        f"the windows would keep about {megabytes(total)}, more than the limit of {megabytes(limit_bytes)}, of {most.alias} alone "
        f"{most.rows:,.0f} rows, as {most.rate:,.4g} come in a second of their times, each of {most.width:,.0f} bytes: "
        f"{fits}, or conditions that fewer rows pass"
    )


def megabytes(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 1e6:,.0f} MB" if size >= 1e7 else f"{size / 1e6:,.3g} MB"


def _duration(us: float) -> str:
    """A length of time of two digits, rounded down, as queries say it."""
    for name, length in (
        ("day", 86_400_000_000),
        ("h", 3_600_000_000),
        ("min", 60_000_000),
        ("s", 1_000_000),
    ):
        if us >= 2 * length:
            count = us / length
            step = max(1, 10 ** (len(str(int(count))) - 2))
            return f"{int(count) // step * step} {name}"
    return f"{max(1, int(us / 1000))} ms"
