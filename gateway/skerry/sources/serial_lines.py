"""Lines over a serial line: ``serial:/dev/ttyUSB0?baud=9600&format=csv``, where the operator allows the device. Each that came is delivered
once; what was sent while nobody listened is gone."""

from __future__ import annotations

from typing import ClassVar

import serial

from skerry.sources.growing_file import file_of
from skerry.sources.lines import Lines
from skerry.sources.stream_type import AddressError, Read, Sensor, Signal, StreamType

_BAUD, _BAUDS, _WAIT_S = 9600, (50, 4_000_000), 0.1
_PARITIES = {"none": serial.PARITY_NONE, "even": serial.PARITY_EVEN, "odd": serial.PARITY_ODD}


class SerialLines(StreamType):
    """A device that is pulled out is looked for again."""

    options: ClassVar[frozenset[str] | None] = frozenset({"baud", "parity", "format"})
    reads_tuple: ClassVar[bool] = False
    every_s: float | None = 0.0

    def init(self, sensor: Sensor) -> None:
        """Open it; nobody else may have it."""
        options = sensor.options
        baud, parity = options.get("baud", str(_BAUD)), options.get("parity", "none")
        least, most = _BAUDS
        if not baud.isdecimal() or not least <= int(baud) <= most:
            raise AddressError(f"baud={baud}: write a number from {least} to {most}, as in baud={_BAUD}")
        if parity not in _PARITIES:
            raise AddressError(f"parity={parity}: a parity is {', '.join(_PARITIES)}")
        self._lines = Lines()
        self._device = serial.Serial(
            str(file_of(sensor)), int(baud), parity=_PARITIES[parity], timeout=_WAIT_S, exclusive=True
        )

    def read(self) -> Read:
        """The lines that have come."""
        data = self._device.read(max(1, self._device.in_waiting))
        return self._lines.take(data) or Signal.NO_VALUE

    def close(self) -> None:
        """Let others have it."""
        device = getattr(self, "_device", None)
        if device is not None:
            device.close()
