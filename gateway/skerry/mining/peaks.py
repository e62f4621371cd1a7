"""Peaks, as scipy finds them: of arrays, as spectra are, or along a stream of numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.mining.errors import MiningError, check_whole
from skerry.mining.state import numbers, pack, unpack

WINDOW = 100_000
Column = np.ndarray[Any, np.dtype[np.float64]]
FOUND = pa.schema([("row", pa.int64()), ("height", pa.float64()), ("prominence", pa.float64())])


def peaks_of(values: Column, prominence: float, width: float | None = None) -> list[int]:
    """The places of an array's peaks that stand out by ``prominence`` and are so wide at half of it."""
    # It takes a third of a second, which who asks for no peaks need not wait.
    from scipy.signal import find_peaks

    found: list[int] = find_peaks(values, prominence=prominence, width=width)[0].tolist()
    return found


class PeaksInStream:
    """``window``: a peak's surroundings, as scipy's ``wlen``, an odd number of rows: how far it stands out is measured within, and one
    that is level for longer is none. A peak is told half a window later, when nothing that comes can change it. Raises MiningError."""

    def __init__(self, prominence: float, window: int, height: float | None = None) -> None:
        check_whole("window", window, 3, WINDOW)
        if window % 2 == 0:
            raise MiningError(f"window is {window}: it is odd, as a peak is its middle")
        if not prominence >= 0:
            raise MiningError(f"prominence is {prominence}: it is a number from 0 on, of the stream's unit")
        self.prominence, self.window, self.height = float(prominence), window, height
        #: Rows so far that were numbers.
        self.rows = 0
        self._last = np.empty(0)
        #: Of rows before this one it has been told whether they are peaks.
        self.told = 0

    def add(self, values: Any) -> pa.Table:
        """The next rows' numbers: the peaks that are certain now, as row (from 0 on), height and prominence. NULL and NaN are left out,
        and not counted as rows. Raises MiningError."""
        new = numbers(values)
        return self._tell(new[~np.isnan(new)], self.window)

    def end(self) -> pa.Table:
        """The peaks that were not certain: no rows follow."""
        return self._tell(np.empty(0), 0)

    def _tell(self, new: Column, behind: int) -> pa.Table:
        from scipy.signal import find_peaks

        whole = np.concatenate([self._last, new])
        first = self.rows - len(self._last)
        self.rows = first + len(whole)
        with warnings.catch_warnings():
            # Of peaks that do not stand out at all, which are then left out.
            warnings.simplefilter("ignore")
            places, known = find_peaks(
                whole, height=-np.inf if self.height is None else self.height, prominence=self.prominence, wlen=self.window,
                plateau_size=(None, self.window),
            )  # fmt: skip
        rows = places + first
        until = max(self.rows - behind, self.told)
        certain = (rows >= self.told) & (rows < until)
        self.told = until
        # Before what is not told yet: half a level peak, its surroundings, and a row that shows where it began.
        self._last = whole[max(until - first - 2 * self.window, 0) :]
        columns = [rows[certain], known["peak_heights"][certain], known["prominences"][certain]]
        return pa.table(columns, schema=FOUND)

    def to_bytes(self) -> bytes:
        """For :meth:`from_bytes`."""
        return pack("peaks in a stream", {
            "prominence": self.prominence, "window": self.window, "height": self.height, "rows": self.rows, "last": self._last,
            "told": self.told,
        })  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes) -> PeaksInStream:
        """Raises MiningError."""
        kept = unpack("peaks in a stream", data)
        made = cls(kept["prominence"], kept["window"], kept["height"])
        made.rows, made._last, made.told = kept["rows"], kept["last"], kept["told"]
        return made
