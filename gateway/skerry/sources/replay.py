"""A file of the past played as if it came now: ``replay:retail.csv?speed=60``, CSV or Parquet, in the data directory's ``streams/``, or
where the operator allows.

Rows come in the order of the file, each when its time has come: as long after the first as their times lie apart, divided by the speed;
``speed=max`` at once. ``shift=now`` moves all times, so that the first row's is now, at no more than their own speed: no row is of the
future. A replay ends with its file. It begins anew when the
gateway has been started again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from skerry.sources.growing_file import file_of
from skerry.sources.stream_type import AddressError, Read, Sensor, Signal, StreamType, Timed, Value

#: Rows handed on at a time, and the longest wait for the next, in s.
_ROWS, _LOOK_S = 2048, 0.05


class Replay(StreamType):
    """The column that is a row's time is the field that is declared TIME, or with ``time=`` another one."""

    options: ClassVar[frozenset[str] | None] = frozenset({"speed", "shift", "time"})
    every_s: float | None = 0.0

    def init(self, sensor: Sensor) -> None:
        """Open it."""
        options, path = sensor.options, file_of(sensor)
        self._speed = _speed(options.get("speed", "1"))
        shift = options.get("shift")
        if shift not in (None, "now"):
            raise AddressError(f"shift={shift}: write shift=now")
        self._shifted = shift == "now"
        if self._shifted and (self._speed is None or self._speed > 1):
            raise AddressError("shift=now goes with speed=1: faster, rows would be of the future")
        self._column = options.get("time", sensor.time or "")
        if not self._column and (self._shifted or self._speed is not None):
            raise AddressError("no field is declared TIME: write time=column, or speed=max")
        try:
            self._rows = _rows(str(path))
        except pa.ArrowException as error:
            raise AddressError(f"{path.name}: {' '.join(str(error).split())}") from None
        self._next: Mapping[str, Any] | None = next(self._rows, None)
        self._first: datetime | None = None
        self._began = time.monotonic()

    def read(self) -> Read:
        """The rows whose time has come."""
        found: list[Value] = []
        while self._next is not None and len(found) < _ROWS:
            at = self._time(self._next)
            if at is not None and self._first is None:
                self._first, self._began, self._now = at, time.monotonic(), datetime.now(UTC)
            if at is not None and self._first is not None and self._speed is not None:
                ahead = (at - self._first).total_seconds() / self._speed - (time.monotonic() - self._began)
                if ahead > 0:
                    self.every_s = min(ahead, _LOOK_S)
                    return found or Signal.NO_VALUE
            found.append(self._moved(self._next, at))
            self._next = next(self._rows, None)
        self.every_s = 0.0
        return found or Signal.END

    def _time(self, row: Mapping[str, Any]) -> datetime | None:
        value = row.get(self._column) if self._column else None
        try:
            found = datetime.fromisoformat(value) if isinstance(value, str) else value
        except ValueError:
            return None
        if not isinstance(found, datetime):
            return None
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

    def _moved(self, row: Mapping[str, Any], at: datetime | None) -> Value:
        if at is None:
            return row
        if not self._shifted or self._first is None:
            return Timed(row, at)
        moved = self._now + (at - self._first)
        return Timed({**row, self._column: moved}, moved)

    def close(self) -> None:
        """The file is closed with its last reader."""


def _speed(text: str) -> float | None:
    if text == "max":
        return None
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e9:
        raise AddressError(f"speed={text}: write a number as in speed=60, or speed=max")
    return found


def _rows(path: str) -> Iterator[Mapping[str, Any]]:
    if path.endswith(".parquet"):
        with pa.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS):
                yield from batch.to_pylist()
        return
    with open(path, "rb") as names:
        header = pa.csv.open_csv(names, read_options=pa.csv.ReadOptions(block_size=1 << 20)).schema.names
    # Fields say what texts are.
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    with pa.csv.open_csv(path, convert_options=convert) as reader:
        for batch in reader:
            yield from batch.to_pylist()
