"""Which rows are asked for, as far as it is known before they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc

from skerry.storage.history.manifest import DayFile

_UTC = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Bounds:
    """None: there is no such bound. ``row`` and ``since_us`` (of the sample, UTC) are inclusive, ``row_end`` and ``until_us`` exclusive;
    ``motes``: node ids; ``streams``: numbers."""

    row: int | None = None
    row_end: int | None = None
    since_us: int | None = None
    until_us: int | None = None
    motes: frozenset[int] | None = None
    streams: frozenset[int] | None = None

    def within(self, other: Bounds) -> Bounds:
        """What both have."""
        return Bounds(
            _pick(max, self.row, other.row),
            _pick(min, self.row_end, other.row_end),
            _pick(max, self.since_us, other.since_us),
            _pick(min, self.until_us, other.until_us),
            _common(self.motes, other.motes),
            _common(self.streams, other.streams),
        )

    def rows(self, start: int, end: int) -> Bounds:
        """Of these the rows ``start`` .. ``end`` - 1."""
        return self.within(Bounds(row=start, row_end=end))

    def may_have(self, file: DayFile) -> bool:
        """Whether some rows of a file may be among them."""
        return (
            (self.row is None or file.last >= self.row)
            and (self.row_end is None or file.first < self.row_end)
            and (self.since_us is None or file.until >= self.since_us)
            and (self.until_us is None or file.since < self.until_us)
        )

    def expression(self) -> pc.Expression:
        """For Arrow's scanner, over the files' columns."""
        return reduce(and_, self._expressions(), pc.scalar(True))

    def _expressions(self) -> Iterator[pc.Expression]:
        if self.row is not None:
            yield pc.field("row") >= self.row
        if self.row_end is not None:
            yield pc.field("row") < self.row_end
        if self.since_us is not None:
            yield pc.field("time") >= pa.scalar(self.since_us, _UTC)
        if self.until_us is not None:
            yield pc.field("time") < pa.scalar(self.until_us, _UTC)
        for name, values in (("nodeid", self.motes), ("stream", self.streams)):
            if values is not None:
                yield pc.field(name).isin(pa.array(sorted(values), pa.int64()))


#: No bounds at all.
EVERYTHING = Bounds()


def _pick(choose: Callable[[list[int]], int], first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return choose(known) if known else None


def _common(first: frozenset[int] | None, second: frozenset[int] | None) -> frozenset[int] | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second
