"""Periods of a stream of symbols: which symbol comes back after how many rows, and at which offset in the period.

After Elfeky, Aref and Elmagarmid (the period mining of STEAM 2002, section 7.2): a symbol s is periodic with period p and offset l by the
share of neighbours among the rows l, l + p, l + 2p … that are both s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skerry.mining.errors import MiningError, check_share, check_whole
from skerry.mining.state import pack, symbols, unpack

LONGEST = 10_000
SYMBOLS = 1_000
#: Counters at most, of 8 bytes each: symbols × periods × offsets.
_COUNTERS = 50_000_000
_NONE = -1
FOUND = pa.schema(
    [("symbol", pa.string()), ("period", pa.int64()), ("offset", pa.int64()), ("matches", pa.int64()), ("confidence", pa.float64())]
)  # fmt: skip


class Periods:
    """``longest``: the longest period that is looked for, in rows. NULL equals nothing."""

    def __init__(self, longest: int, most_symbols: int = 100) -> None:
        check_whole("longest", longest, 1, LONGEST)
        check_whole("most_symbols", most_symbols, 1, SYMBOLS)
        self._offsets = longest * (longest + 1) // 2
        if self._offsets * most_symbols > _COUNTERS:
            raise MiningError(
                f"longest {longest} with {most_symbols} symbols needs {self._offsets * most_symbols} counters: at most {_COUNTERS} are kept"
            )
        self.longest, self.most_symbols = longest, most_symbols
        #: Rows so far.
        self.rows = 0
        self._names: dict[str, int] = {}
        self._last = np.empty(0, np.int64)
        self._matches = np.zeros((0, self._offsets), np.int64)

    def add(self, values: Any) -> None:
        """The next rows' symbols. Raises MiningError, also where there are more symbols than are kept; then nothing was added."""
        codes = self._codes(symbols(values))
        if len(self._matches) < len(self._names):
            more = np.zeros((len(self._names) - len(self._matches), self._offsets), np.int64)
            self._matches = np.concatenate([self._matches, more])
        whole = np.concatenate([self._last, codes])
        first, before = self.rows - len(self._last), len(self._last)
        for period in range(1, min(self.longest, len(whole) - 1) + 1):
            start = max(before, period)
            now, then = whole[start:], whole[start - period : len(whole) - period]
            (same,) = np.nonzero((now == then) & (now != _NONE))
            offsets = (same + start + first) % period + _begin(period)
            np.add.at(self._matches, (now[same], offsets), 1)
        self.rows += len(codes)
        self._last = whole[-self.longest :]

    def _codes(self, found: list[str | None]) -> np.ndarray[Any, np.dtype[np.int64]]:
        new = [name for name in dict.fromkeys(found) if name is not None and name not in self._names]
        if len(self._names) + len(new) > self.most_symbols:
            raise MiningError(
                f"'{new[-1]}' is one symbol more than the {self.most_symbols} that are kept: cut values into fewer steps"
            )
        self._names.update(zip(new, range(len(self._names), len(self._names) + len(new)), strict=True))
        return np.array([_NONE if name is None else self._names[name] for name in found], np.int64)

    def found(self, confidence: float = 0.8, least: int = 3) -> pa.Table:
        """Symbols with their periods and offsets: those that came back in at least this share of the times that they could have, and
        could have at least ``least`` times. The most certain first, of these the shortest period. Raises MiningError."""
        check_share("confidence", confidence)
        check_whole("least", least, 1, 1 << 60)
        rows: list[tuple[str, int, int, int, float]] = []
        for period in range(1, self.longest + 1):
            offsets = np.arange(period)
            could = np.maximum(-(-(self.rows - offsets) // period) - 1, 0)
            counted = self._matches[:, _begin(period) : _begin(period) + period]
            shares = np.divide(counted, could, out=np.zeros(counted.shape), where=could > 0)
            for symbol, offset in np.argwhere((shares >= confidence) & (could >= least)):
                matches, share = int(counted[symbol, offset]), float(shares[symbol, offset])
                rows.append((list(self._names)[symbol], period, int(offset), matches, share))
        rows.sort(key=lambda row: (-row[4], row[1], row[2], row[0]))
        return pa.table([list(column) for column in zip(*rows, strict=True)] or [[]] * 5, schema=FOUND)

    def matches(self, symbol: str, period: int) -> int:
        """How often a symbol stood where it stood so many rows before. Raises MiningError."""
        check_whole("period", period, 1, self.longest)
        code = self._names.get(symbol)
        return 0 if code is None else int(self._matches[code, _begin(period) : _begin(period) + period].sum())

    def to_bytes(self) -> bytes:
        """For :meth:`from_bytes`."""
        return pack("periods", {
            "longest": self.longest, "most": self.most_symbols, "rows": self.rows, "names": list(self._names), "last": self._last,
            "matches": self._matches,
        })  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes) -> Periods:
        """Raises MiningError."""
        kept = unpack("periods", data)
        made = cls(kept["longest"], kept["most"])
        made.rows, made._last, made._matches = kept["rows"], kept["last"], kept["matches"]
        made._names = {name: code for code, name in enumerate(kept["names"])}
        return made


def _begin(period: int) -> int:
    """Where the counters of a period's offsets begin."""
    return period * (period - 1) // 2
