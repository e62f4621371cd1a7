"""When a stream of numbers had its peaks, and when it was nearest to each of some known shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.mining.peaks import PeaksInStream
from skerry.mining.shapes import Shapes
from skerry.mining.state import numbers, pack, unpack

Times = np.ndarray[Any, np.dtype[np.int64]]
MOMENT = pa.timestamp("us", "UTC")
PEAKS = pa.schema(
    [("row", pa.int64()), ("peak", MOMENT), ("height", pa.float64()), ("prominence", pa.float64())]
)
NEAREST = pa.schema(
    [("shape", pa.string()), ("distance", pa.float64()), ("row", pa.int64()), ("since", MOMENT), ("until", MOMENT)]
)  # fmt: skip


class PeakMoments:
    """Peaks of :class:`PeaksInStream`, each with the time of its row, kept until they are asked for."""

    def __init__(self, prominence: float, window: int, height: float | None = None) -> None:
        self._peaks = PeaksInStream(prominence, window, height)
        #: Of the rows from ``_first`` on, which may still be told as peaks.
        self._first, self._times = 0, np.empty(0, np.int64)
        self._found = PEAKS.empty_table()

    def add(self, values: Any, times: Times) -> None:
        """The next rows' numbers and times, in µs. NULL and NaN are left out, and not counted as rows. Raises MiningError."""
        new = numbers(values)
        self._times = np.concatenate([self._times, np.asarray(times, np.int64)[~np.isnan(new)]])
        self._keep(self._peaks.add(new))

    def found(self, *, over: bool) -> pa.Table:
        """The peaks that have become certain since this was asked last; ``over``: no rows follow, and all are."""
        if over:
            self._keep(self._peaks.end())
        found, self._found = self._found, PEAKS.empty_table()
        return found

    def _keep(self, told: pa.Table) -> None:
        at = self._times[told["row"].to_numpy() - self._first]
        columns = [told["row"], pa.array(at).cast(MOMENT), told["height"], told["prominence"]]
        self._found = pa.concat_tables([self._found, pa.table(columns, schema=PEAKS)]).combine_chunks()
        gone = max(self._peaks.told - self._first, 0)
        self._first, self._times = self._first + gone, self._times[gone:]

    def to_bytes(self) -> bytes:
        """For :meth:`from_bytes`."""
        found = [self._found[name].to_numpy() for name in ("row", "height", "prominence")]
        return pack("moments of peaks", {
            "peaks": self._peaks.to_bytes(), "first": self._first, "times": self._times,
            "found": found, "at": self._found["peak"].cast(pa.int64()).to_numpy(),
        })  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes) -> PeakMoments:
        """Raises MiningError."""
        kept = unpack("moments of peaks", data)
        made = cls.__new__(cls)
        made._peaks = PeaksInStream.from_bytes(kept["peaks"])
        made._first, made._times = kept["first"], kept["times"]
        rows, heights, prominences = kept["found"]
        made._found = pa.table([rows, pa.array(kept["at"]).cast(MOMENT), heights, prominences], schema=PEAKS)
        return made


class NearestMoments:
    """When a stream was nearest to each of some shapes: which of all neighbouring rows, as many as a shape has points, are so, and how
    near. Rows among which one is no number, or that are all the same, have no shape."""

    def __init__(self, shapes: Mapping[str, Sequence[float]]) -> None:
        self._given = {name: [float(point) for point in points] for name, points in shapes.items()}
        self._shapes = Shapes(self._given)
        self.rows = 0
        self._last, self._times = np.empty(0), np.empty(0, np.int64)
        count = len(self._given)
        self._distances, self._best = np.full(count, np.inf), np.full((count, 3), -1, np.int64)

    def add(self, values: Any, times: Times) -> None:
        """The next rows' numbers and times, in µs. Raises MiningError."""
        whole = np.concatenate([self._last, numbers(values)])
        moments = np.concatenate([self._times, np.asarray(times, np.int64)])
        first, points = self.rows - len(self._last), self._shapes.points
        self.rows = first + len(whole)
        begin = max(len(whole) - points + 1, 0)
        self._last, self._times = whole[begin:], moments[begin:]
        if len(whole) < points:
            return
        away = self._shapes.distances(np.lib.stride_tricks.sliding_window_view(whole, points))
        away = np.where(np.isnan(away), np.inf, away)
        for shape, place in enumerate(away.argmin(axis=0).tolist()):
            # Of equally near ones it stays with the first.
            if away[place, shape] < self._distances[shape]:
                self._distances[shape] = away[place, shape]
                end = place + points - 1
                self._best[shape] = first + end, moments[place], moments[end]

    def found(self) -> pa.Table:
        """By shape the distance of the nearest rows, the number of the last of them, from 0 on, and their times."""
        known = np.isfinite(self._distances)
        row, since, until = self._best[known].T
        names = np.array(list(self._given), object)[known]
        columns = [
            pa.array(names, pa.string()),
            self._distances[known],
            row,
            *(pa.array(one).cast(MOMENT) for one in (since, until)),
        ]
        return pa.table(columns, schema=NEAREST)

    def to_bytes(self) -> bytes:
        """For :meth:`from_bytes`."""
        return pack("moments of shapes", {
            "shapes": self._given, "rows": self.rows, "last": self._last, "times": self._times, "distances": self._distances,
            "best": self._best,
        })  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes) -> NearestMoments:
        """Raises MiningError."""
        kept = unpack("moments of shapes", data)
        made = cls(kept["shapes"])
        made.rows, made._last, made._times = kept["rows"], kept["last"], kept["times"]
        made._distances, made._best = kept["distances"], kept["best"]
        return made
