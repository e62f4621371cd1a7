"""What sources have brought: how many rows, how fast, within which bounds, and how many were left out.

The intake process tells of each batch (:class:`skerry.sources.messages.Brought`), and the gateway adds that up. Two rates are kept. One is
of arrival, for people. The other is of rows' own times, for planners: a window holds rows of a span of their times, however fast these are
replayed.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from skerry.sensors.traffic import Seen, SourceSeen, Traffic
from skerry.sources.messages import Brought, Key, SourceState
from skerry.sql.row_text import moment_text

#: Rates are of the last one to two stretches, each of so long, in s.
STRETCH_S = 60.0
#: The rate of rows' times is known once these span so much: rows that a server had gathered come at once.
KNOWN_US = 10_000_000


@dataclass
class _Stretch:
    """``began``: when the first of its rows came."""

    began: float
    rows: int = 0
    least_us: int = 1 << 62
    greatest_us: int = -(1 << 62)


@dataclass
class _Source:
    """``rows``: all of them; ``before``, ``now``: the last stretches; ``errors``: rows that were left out, of openings before this one and
    of it."""

    rows: int = 0
    before: _Stretch | None = None
    now: _Stretch | None = None
    errors: tuple[int, int] = (0, 0)

    def note(self, rows: int, least_us: int, greatest_us: int, at: float) -> None:
        """More rows."""
        if self.now is None or at - self.now.began >= STRETCH_S:
            recent = self.now is not None and at - self.now.began < 2 * STRETCH_S
            self.before, self.now = self.now if recent else None, _Stretch(at)
        self.rows += rows
        self.now.rows += rows
        self.now.least_us = min(self.now.least_us, least_us)
        self.now.greatest_us = max(self.now.greatest_us, greatest_us)

    def left_out(self, errors: int) -> None:
        """So many rows since it was opened."""
        past, last = self.errors
        self.errors = (past + last, errors) if errors < last else (past, errors)

    def kept(self) -> list[Any]:
        """Its rows, errors and stretches, as JSON has them."""
        parts = [astuple(part) if part is not None else None for part in (self.before, self.now)]
        return [self.rows, sum(self.errors), *parts]

    def arriving(self, at: float) -> float:
        """Rows in a second that came of late."""
        lately = [
            one for one in (self.before, self.now) if one is not None and at - one.began < 2 * STRETCH_S
        ]
        if not lately:
            return 0.0
        return sum(one.rows for one in lately) / max(1.0, at - lately[0].began)

    def rate(self) -> float | None:
        """Rows in a second of their times; None: that is not known."""
        known = [one for one in (self.before, self.now) if one is not None]
        if not known:
            return None
        span = max(one.greatest_us for one in known) - min(one.least_us for one in known)
        return (sum(one.rows for one in known) - 1) * 1e6 / span if span >= KNOWN_US else None


@dataclass
class _Table:
    rows: int = 0
    bytes: dict[str, int] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    ranges: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    sources: dict[int, _Source] = field(default_factory=dict)

    @property
    def widths(self) -> dict[str, float]:
        """Bytes of a value in memory, by column."""
        return {name: size / self.counted[name] for name, size in self.bytes.items() if self.counted[name]}


class SourceStatistics:
    """By number of table. Several threads may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[int, _Table] = {}
        #: How often anything has come.
        self.noted = 0

    # ---- what comes ----

    def note(self, brought: Sequence[Brought], at: float) -> None:
        """Batches that are in the log."""
        with self._lock:
            self.noted += 1
            for one in brought:
                table = self._tables.setdefault(one.table, _Table())
                rows = sum(count for count, _, _ in one.sources.values())
                table.rows += rows
                for number, (count, least_us, greatest_us) in one.sources.items():
                    table.sources.setdefault(number, _Source()).note(count, least_us, greatest_us, at)
                for name, (size, least, greatest) in one.columns.items():
                    table.bytes[name] = table.bytes.get(name, 0) + size
                    table.counted[name] = table.counted.get(name, 0) + rows
                    if least is not None:
                        known = table.ranges.get(name, (least, greatest))
                        if isinstance(least, datetime) != isinstance(known[0], datetime):
                            # A column of another type has come in place of one that was dropped.
                            known = least, greatest
                        table.ranges[name] = min(least, known[0]), max(greatest, known[1])

    def told(self, states: Mapping[Key, SourceState]) -> None:
        """How sources are."""
        with self._lock:
            for (table, number), state in states.items():
                errors = state.misfits + state.ahead
                if errors or number in self._tables.get(table, _Table()).sources:
                    sources = self._tables.setdefault(table, _Table()).sources
                    sources.setdefault(number, _Source()).left_out(errors)

    def keep(self, known: Mapping[int, Collection[int]]) -> None:
        """Forget tables, and tuples, that there are no more."""
        with self._lock:
            self._tables = {number: table for number, table in self._tables.items() if number in known}
            for number, table in self._tables.items():
                for gone in table.sources.keys() - set(known[number]):
                    del table.sources[gone]

    # ---- over a restart ----

    def kept(self) -> list[Any]:
        """All of it, as JSON has it."""
        with self._lock:
            return [
                [
                    number, table.rows, table.bytes, table.counted,
                    {name: [_kept(least), _kept(most)] for name, (least, most) in table.ranges.items()},
                    [[tuple_, *one.kept()] for tuple_, one in table.sources.items()],
                ]
                for number, table in self._tables.items()
            ]  # fmt: skip

    def restore(self, kept: Sequence[Any]) -> None:
        """What :meth:`kept` gave. Raises ValueError, KeyError, TypeError, AttributeError: it is something else."""
        found = {}
        for number, rows, size, counted, ranges, sources in kept:
            table = found[int(number)] = _Table(rows, dict(size), dict(counted))
            table.ranges = {
                name: (_restored(least), _restored(most)) for name, (least, most) in ranges.items()
            }
            for tuple_, own, errors, *parts in sources:
                before, now = (_Stretch(*part) if part is not None else None for part in parts)
                table.sources[int(tuple_)] = _Source(own, before, now, (errors, 0))
        with self._lock:
            self._tables = found

    # ---- what is known ----

    def seen(self, table: int, at: float) -> Seen:
        """Of a table, for people."""
        with self._lock:
            known = self._tables.get(table, _Table())
            return Seen(
                known.rows,
                sum(source.arriving(at) for source in known.sources.values()),
                sum(sum(source.errors) for source in known.sources.values()),
                {name: (_plain(least), _plain(greatest)) for name, (least, greatest) in known.ranges.items()},
                known.widths,
                {
                    number: SourceSeen(one.rows, one.arriving(at), one.rate(), sum(one.errors))
                    for number, one in known.sources.items()
                },
            )

    def traffic(self, table: int, sources: Sequence[int]) -> Traffic:
        """Of these sources of a table, for planners."""
        with self._lock:
            known = self._tables.get(table, _Table())
            rates = [
                one.rate() if (one := known.sources.get(number)) is not None else None for number in sources
            ]
            found = [rate for rate in rates if rate is not None]
            return Traffic(sum(found), len(rates) - len(found), known.widths)


def _kept(value: Any) -> Any:
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    return {"decimal": str(value)} if isinstance(value, Decimal) else value


def _restored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return datetime.fromisoformat(value["time"]) if "time" in value else Decimal(value["decimal"])


def _plain(value: Any) -> Any:
    """As people and JSON have it."""
    if isinstance(value, datetime):
        return moment_text(value)
    return float(value) if isinstance(value, Decimal) else value
