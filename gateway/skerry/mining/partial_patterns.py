"""Partial periodic patterns: what comes at some places of most periods, whatever is at the others (``a * b *``).

The stream is cut into periods; each is a transaction of pairs of place and symbol, and mlxtend's FP-growth finds those that are frequent
together. Equal periods are kept once with their count, so that the answer is the one over all periods.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.mining.errors import MiningError, check_share, check_whole
from skerry.mining.state import pack, symbols, unpack

LONGEST = 10_000
Item = tuple[int, str]
FOUND = pa.schema(
    [("support", pa.float64()), ("places", pa.list_(pa.int64())), ("symbols", pa.list_(pa.string())), ("pattern", pa.string())]
)  # fmt: skip


class PartialPatterns:
    """``period``: in slots. ``most``: different periods that are kept at most."""

    def __init__(self, period: int, most: int = 100_000) -> None:
        check_whole("period", period, 1, LONGEST)
        check_whole("most", most, 1, 10_000_000)
        self.period, self.most = period, most
        #: Whole periods so far.
        self.periods = 0
        self._counts: Counter[tuple[Item, ...]] = Counter()
        self._open: set[Item] = set()
        self._slot: int | None = None
        self._first = 0

    def add(self, values: Any, slots: Any = None) -> None:
        """The next rows' symbols. ``slots``: the slot of time of each, as an integer that never falls, of which several rows may have the
        same and none any; where none are given each row is the next slot, and a period is whole with its last row. The first row's slot
        begins the first period. NULL is no symbol. Raises MiningError; then nothing was added."""
        found = symbols(values)
        at = self._slots(slots, len(found))
        more, open_, slot, periods = Counter[tuple[Item, ...]](), set(self._open), self._slot, self.periods
        first = self._first if slot is not None or not len(at) else int(at[0])
        for symbol, now in zip(found, at.tolist(), strict=True):
            if slot is not None and now < slot:
                raise MiningError(f"slot {now} comes behind slot {slot}: sort rows by their time")
            passed = (now - first) // self.period - periods
            if passed < 0:
                raise MiningError(
                    f"slot {now} is of a period that was whole without slots: give them for all rows, or for none"
                )
            if passed:
                more[tuple(sorted(open_))] += 1
                if passed > 1:
                    more[()] += passed - 1
                open_, periods = set(), periods + passed
            slot = now
            if symbol is not None:
                open_.add(((now - first) % self.period, symbol))
            if slots is None and (now - first) % self.period == self.period - 1:
                # No other row has this slot.
                more[tuple(sorted(open_))] += 1
                open_, periods = set(), periods + 1
        different = len(self._counts) + len(more.keys() - self._counts.keys())
        if different > self.most:
            raise MiningError(
                f"there are {different} different periods, of which {self.most} are kept: cut values into fewer steps"
            )
        self._counts.update(more)
        self._open, self._slot, self.periods, self._first = open_, slot, periods, first

    def _slots(self, slots: Any, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        if slots is None:
            start = 0 if self._slot is None else self._slot + 1
            return np.arange(start, start + count)
        if isinstance(slots, pa.Array | pa.ChunkedArray):
            slots = slots.to_numpy(zero_copy_only=False)
        found = np.asarray(slots)
        if found.dtype.kind not in "iu" or len(found) != count:
            raise MiningError(
                f"slots are {count} integers, one for each row; these are {len(found)} of {found.dtype}"
            )
        return found.astype(np.int64)

    def found(self, support: float = 0.5, longest: int | None = None) -> pa.Table:
        """Patterns that at least this share of the whole periods have; ``longest``: of so many places at most. The most frequent first, of
        these the longest. Raises MiningError."""
        # It brings scikit-learn along, which takes a second.
        import pandas as pd
        from mlxtend.frequent_patterns import fpgrowth

        check_share("support", support)
        items = sorted({item for period in self._counts for item in period})
        rows: list[tuple[float, tuple[Item, ...]]] = []
        if items and self.periods:
            place_of = {item: place for place, item in enumerate(items)}
            held = np.zeros((len(self._counts), len(items)), bool)
            for row, period in enumerate(self._counts):
                held[row, [place_of[item] for item in period]] = True
            # What is rare by itself is in no pattern; without it the table over all periods is small.
            times = np.fromiter(self._counts.values(), np.int64, len(self._counts))
            (kept,) = np.nonzero(times @ held >= support * self.periods - 1e-9)
            if len(kept):
                table = pd.DataFrame(
                    np.repeat(held[:, kept], times, axis=0), columns=[str(place) for place in kept]
                )
                for share, names in fpgrowth(
                    table, min_support=support, use_colnames=True, max_len=longest
                ).itertuples(index=False):
                    rows.append((float(share), tuple(sorted(items[int(name)] for name in names))))
        rows.sort(key=lambda row: (-row[0], -len(row[1]), row[1]))
        columns = [
            [share for share, _ in rows],
            [[place for place, _ in pattern] for _, pattern in rows],
            [[symbol for _, symbol in pattern] for _, pattern in rows],
            [self._written(pattern) for _, pattern in rows],
        ]
        return pa.table(columns, schema=FOUND)

    def _written(self, pattern: tuple[Item, ...]) -> str:
        at: dict[int, list[str]] = {}
        for place, symbol in pattern:
            at.setdefault(place, []).append(symbol)
        return " ".join("+".join(at[place]) if place in at else "*" for place in range(self.period))

    def to_bytes(self) -> bytes:
        """For :meth:`from_bytes`."""
        return pack("partial patterns", {
            "period": self.period, "most": self.most, "periods": self.periods, "slot": self._slot, "first": self._first,
            "open": sorted(self._open), "counts": [[list(period), count] for period, count in sorted(self._counts.items())],
        })  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes) -> PartialPatterns:
        """Raises MiningError."""
        kept = unpack("partial patterns", data)
        made = cls(kept["period"], kept["most"])
        made.periods, made._slot, made._first = kept["periods"], kept["slot"], kept["first"]
        made._open = {(place, symbol) for place, symbol in kept["open"]}
        made._counts = Counter({tuple((p, s) for p, s in period): count for period, count in kept["counts"]})
        return made
