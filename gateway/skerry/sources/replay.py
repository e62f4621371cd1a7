"""A file of the past played as if it came now: ``replay:retail.csv?speed=60``, CSV, Parquet or lines of JSON, in the data directory's
``streams/``, or where the operator allows.

Rows come in the order of the file, each when its time has come: as long after the first as their times lie apart, divided by the speed;
``speed=max`` at once. ``clock=name`` is that of all replays which name it, so that they keep together. ``shift=now`` moves all times, so
that the clock's first is now, at no more than their own speed: no row is of the future. A replay ends with its file. After a restart it
goes on as if nothing had been; it begins anew when nobody has wanted it meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import ClassVar

import msgspec

from skerry.sources import replay_clock
from skerry.sources.decoding import moment
from skerry.sources.growing_file import file_of
from skerry.sources.stream_type import AddressError, Read, Sensor, Signal, StreamType, Timed, Unfit, Value
from skerry.sources.table_files import rows_of

#: Rows handed on at a time, and the longest wait for the next, in s.
_ROWS, _LOOK_S = 2048, 0.05
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Replay(StreamType):
    """The column that is a row's time is the field that is declared TIME, or with ``time=`` another one."""

    options: ClassVar[frozenset[str] | None] = frozenset({"speed", "shift", "time", "clock"})
    reads_tuple: ClassVar[bool] = False
    every_s: float | None = 0.0

    def init(self, sensor: Sensor) -> None:
        """Open it."""
        options, path = sensor.options, file_of(sensor)
        speed = None if sensor.trial else _speed(options.get("speed", "1"))
        shift = options.get("shift")
        if shift not in (None, "now"):
            raise AddressError(f"shift={shift}: write shift=now")
        self._shifted = shift == "now" and not sensor.trial
        if self._shifted and (speed is None or speed > 1):
            raise AddressError("shift=now goes with speed=1: faster, rows would be of the future")
        self._column = options.get("time", sensor.time or "")
        if not self._column and (self._shifted or speed is not None):
            raise AddressError("no field is declared TIME: write time=column, or speed=max")
        self._form = sensor.time_format if self._column.lower() == (sensor.time or "").lower() else "iso"
        self._name = options.get("clock")
        self._clock = replay_clock.clock_of(self._name, speed, self)
        self.in_step = self._clock.keeps_together
        self._given, began = replay_clock.position_of(sensor.position)
        if began is not None:
            self._clock.go_on(began)
        self.position = sensor.position
        self._rows: Iterator[Value] = map(_object, rows_of(path, self._given))
        self._next: Value | None = next(self._rows, None)
        if speed is not None or self._shifted or "time" in options:
            self._check_column(path, self._next)
        #: What the file is not, behind the rows that could be read.
        self._wrong: AddressError | None = None
        self._mark()

    def _mark(self) -> None:
        if self._given or self.position is None:
            self.position = json.dumps([self._given, self._clock.position])

    def _check_column(self, path: Path, row: Value | None) -> None:
        """Raises AddressError where rows of a table have no such column."""
        if path.suffix.lower() not in (".csv", ".parquet") or not isinstance(row, Mapping):
            return
        if self._column.lower() not in {name.lower() for name in row}:
            raise AddressError(
                f"{path.name} has no column '{self._column}', by which it would be played: write time=column, of {', '.join(row)}"
            )

    def read(self) -> Read:
        """The rows whose time has come."""
        found: list[Value] = []
        while self._next is not None and len(found) < _ROWS:
            at = self._time(self._next)
            if at is not None and at <= datetime.now(UTC):
                # What is not of the past is nobody's to wait for: it is told as a row ahead of the clock.
                ahead = self._clock.wait_s(self, at, in_hand=bool(found))
                if ahead > 0:
                    self.every_s = min(ahead, _LOOK_S)
                    break
            else:
                self._clock.pass_by(self)
            found.append(self._moved(self._next, at))
            try:
                self._next = next(self._rows, None)
            except AddressError as error:
                # What stands before it has been played.
                self._next, self._wrong = None, error
        else:
            self.every_s = 0.0
            if not found and self._wrong is not None:
                raise self._wrong
            if not found:
                return Signal.END
        if not found:
            return Signal.NO_VALUE
        self._given += len(found)
        self._mark()
        return found

    def _time(self, row: Value) -> datetime | None:
        if not self._column or not isinstance(row, Mapping):
            return None
        value = row.get(self._column)
        if value is None:
            value = next((other for name, other in row.items() if name.lower() == self._column.lower()), None)
        if value is None:
            return None
        try:
            return _EPOCH + timedelta(microseconds=moment(value, self._form))
        except (ValueError, TypeError, ArithmeticError):
            return None

    def _moved(self, row: Value, at: datetime | None) -> Value:
        if at is None or not isinstance(row, Mapping):
            return row
        if not self._shifted or at > datetime.now(UTC):
            return Timed(row, at, self._clock.now())
        moved = self._clock.moved(at)
        return Timed({**row, self._column: moved}, moved)

    def close(self) -> None:
        """The file is closed with its last reader."""
        clock = getattr(self, "_clock", None)
        if clock is not None:
            replay_clock.left(self._name, clock, self)


def _object(row: Value) -> Value:
    """A line of JSON as what it says: its time is looked for. One that is none is told as such."""
    if not isinstance(row, bytes) or isinstance(row, Unfit):
        return row
    try:
        found = _JSON.decode(row)
    except (msgspec.DecodeError, ValueError, ArithmeticError, RecursionError):
        return row
    return found if isinstance(found, dict) else row


_JSON = msgspec.json.Decoder(float_hook=Decimal)


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
