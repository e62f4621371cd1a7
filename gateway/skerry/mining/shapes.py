"""The nearest of some known shapes: of arrays, as spectra are, or of the last rows of a stream of numbers.

Shapes are compared z-normalised: less their mean, over their standard deviation, so that neither height nor level counts. The distance of
two of m points is Euclid's, from 0 (the same shape) by √(2m) (nothing in common) to 2√m (upside down).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.mining.errors import MiningError
from skerry.mining.state import numbers, pack, unpack

POINTS = 65_536
#: Numbers of all shapes together.
NUMBERS = 1_000_000
Matrix = np.ndarray[Any, np.dtype[np.float64]]
FOUND = pa.schema([("row", pa.int64()), ("shape", pa.string()), ("distance", pa.float64())])


def normalised(rows: Matrix) -> Matrix:
    """Each row less its mean, over its standard deviation; NaN where it has none, as it is level or has gaps."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=1, keepdims=True))
    # What is level but for rounding has no shape.
    level = spread <= 1e-12 * np.abs(rows).max(axis=1, keepdims=True, initial=0)
    found: Matrix = np.divide(
        centred, spread, out=np.full(rows.shape, np.nan), where=~level & np.isfinite(spread)
    )
    return found


class Shapes:
    """Known shapes by their names, all of equally many points. Raises MiningError."""

    def __init__(self, shapes: Mapping[str, Sequence[float]]) -> None:
        if not shapes:
            raise MiningError("there are no shapes to compare with")
        lengths = {name: len(points) for name, points in shapes.items()}
        self.points = next(iter(lengths.values()))
        for name, length in lengths.items():
            if length != self.points:
                raise MiningError(
                    f"shape '{name}' has {length} points and others have {self.points}: all have equally many"
                )
        if not 2 <= self.points <= POINTS or self.points * len(shapes) > NUMBERS:
            raise MiningError(
                f"there are {len(shapes)} shapes of {self.points} points: one has 2 to {POINTS}, and all together at most {NUMBERS}"
            )
        self.names = list(shapes)
        self._normal = normalised(np.array(list(shapes.values()), np.float64))
        for name, shape in zip(self.names, self._normal, strict=True):
            if np.isnan(shape).any():
                raise MiningError(
                    f"shape '{name}' is level, or has points that are no numbers: it has nothing to compare with"
                )

    def distances(self, rows: Matrix) -> Matrix:
        """Of each row from each shape; NaN for a row without a shape."""
        products = normalised(rows) @ self._normal.T
        found: Matrix = np.sqrt(np.maximum(2 * (self.points - products), 0))
        return found

    def nearest(self, rows: Matrix) -> tuple[pa.Array, pa.Array]:
        """The nearest shape's name and its distance for each row; NULL for a row without a shape. Of equally near ones the first."""
        distances = self.distances(rows)
        known = ~np.isnan(distances).any(axis=1)
        best = np.where(known, np.nan_to_num(distances, nan=0).argmin(axis=1), 0)
        away = distances[np.arange(len(rows)), best]
        return pa.array(np.array(self.names, object)[best], pa.string(), mask=~known), pa.array(
            away, mask=~known
        )


class ShapesInStream:
    """For each row of a stream of numbers, the shape that it and the rows before it are nearest to."""

    def __init__(self, shapes: Mapping[str, Sequence[float]]) -> None:
        self._given = {name: [float(point) for point in points] for name, points in shapes.items()}
        self._shapes = Shapes(self._given)
        self.rows = 0
        self._last = np.empty(0)

    def add(self, values: Any) -> pa.Table:
        """The next rows' numbers. Gives the row's number, from 0 on, with shape and distance, for each row with enough others before
        it, all of them numbers and not all the same. Raises MiningError."""
        whole = np.concatenate([self._last, numbers(values)])
        first, points = self.rows - len(self._last), self._shapes.points
        self.rows = first + len(whole)
        self._last = whole[max(len(whole) - points + 1, 0) :]
        if len(whole) < points:
            return FOUND.empty_table()
        names, distances = self._shapes.nearest(np.lib.stride_tricks.sliding_window_view(whole, points))
        row = pa.array(np.arange(first + points - 1, self.rows))
        return pa.table([row, names, distances], schema=FOUND).filter(names.is_valid())

    def to_bytes(self) -> bytes:
        """For :meth:`from_bytes`."""
        return pack("shapes in a stream", {"shapes": self._given, "rows": self.rows, "last": self._last})

    @classmethod
    def from_bytes(cls, data: bytes) -> ShapesInStream:
        """Raises MiningError."""
        kept = unpack("shapes in a stream", data)
        made = cls(kept["shapes"])
        made.rows, made._last = kept["rows"], kept["last"]
        return made
