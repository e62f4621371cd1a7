"""One user's rows, waiting to be read: by reference into batches, made into values when somebody reads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64 = npt.NDArray[np.int64]
#: Rows a feed keeps in memory; a reader further behind is served from the log.
ROWS_MAXIMUM = 100_000


@dataclass(frozen=True, slots=True)
class Delivery:
    """Rows of one batch for one user: their numbers in the log, and how to make their values."""

    rows: Int64
    project: Callable[[Int64], pa.RecordBatch]
    places: Int64

    def values(self, after: int) -> list[tuple[int, dict[str, Any]]]:
        """(row number, values by column) of the rows behind ``after``."""
        keep = self.rows > after
        if not keep.any():
            return []
        values: list[dict[str, Any]] = self.project(self.places[keep]).to_pylist()
        return list(zip(self.rows[keep].tolist(), values, strict=True))


class FeedBuffer:
    """Written by the proxy, read by any number of readers, each with its own position."""

    def __init__(self, floor: int) -> None:
        self._deliveries: deque[Delivery] = deque()
        self._kept = 0
        self._lock = threading.Lock()
        self.floor = floor
        self.delivered = 0

    def add(self, delivery: Delivery) -> None:
        """Rows in ascending order, behind all earlier ones."""
        with self._lock:
            self._deliveries.append(delivery)
            self._kept += len(delivery.rows)
            self.delivered += len(delivery.rows)
            while self._kept > ROWS_MAXIMUM and len(self._deliveries) > 1:
                oldest = self._deliveries.popleft()
                self._kept -= len(oldest.rows)
                self.floor = int(oldest.rows[-1])

    def after(self, position: int) -> list[tuple[int, dict[str, Any]]] | None:
        """Rows behind a position; None when some of them are no longer (or not yet) in memory."""
        with self._lock:
            if position < self.floor:
                return None
            deliveries = list(self._deliveries)
        return [
            row
            for delivery in deliveries
            if delivery.rows[-1] > position
            for row in delivery.values(position)
        ]
