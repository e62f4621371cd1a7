"""A user's rows of one batch: their numbers in the log, and his columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Rows of one batch for one user: their numbers in the log, ascending, and his columns. Rows of a window, which one row
    of the log brought, have its number."""

    numbers: Int64
    columns: pa.RecordBatch

    @classmethod
    def of_one(cls, number: int, columns: pa.RecordBatch) -> Delivery:
        """Rows that all have one number."""
        return cls(np.full(columns.num_rows, number, np.int64), columns)

    def behind(self, position: int) -> Delivery:
        """Those behind a row number."""
        if self.numbers[0] > position:
            return self
        skip = int(self.numbers.searchsorted(position, "right"))
        return Delivery(self.numbers[skip:], self.columns.slice(skip))

    @property
    def positions(self) -> Int64:
        """Behind which number to resume after each row: its own, once all with that number have been read."""
        more = np.append(self.numbers[1:] == self.numbers[:-1], False)
        positions: Int64 = self.numbers - more
        return positions

    def values(self) -> list[tuple[int, dict[str, Any]]]:
        """(position to resume behind, values by column)."""
        values: list[dict[str, Any]] = self.columns.to_pylist()
        return list(zip(self.positions.tolist(), values, strict=True))


def in_order(parts: list[Delivery]) -> list[Delivery]:
    """Deliveries of different streams in one batch, as one by row number."""
    if len(parts) < 2:
        return parts
    numbers = np.concatenate([part.numbers for part in parts])
    order = np.argsort(numbers, kind="stable")
    table = pa.Table.from_batches([part.columns for part in parts]).combine_chunks()
    return [Delivery(numbers[order], table.take(pa.array(order)).to_batches()[0])]
