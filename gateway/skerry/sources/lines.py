"""Bytes as they come → lines."""

from __future__ import annotations

from skerry.sources.stream_type import Unfit

#: A line is not longer than so many bytes, and of one that is so many are shown.
LINE_BYTES, _SHOWN_BYTES = 1 << 20, 1 << 10


class Lines:
    """What has no end yet waits for it. Of a line that is too long the rest is passed over, up to its end."""

    def __init__(self) -> None:
        self._rest = b""
        self._passed = 0

    @property
    def unended(self) -> int:
        """Bytes of the line that has no end yet."""
        return self._passed + len(self._rest)

    def take(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete, but empty ones; one that is too long, as soon as it is, as what does not fit."""
        if self._passed:
            passed, end, data = data.partition(b"\n")
            if not end:
                self._passed += len(passed)
                return []
            self._passed = 0
        *found, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES:
            found.append(Unfit(self._rest[:_SHOWN_BYTES], f"it is a line of more than {LINE_BYTES >> 20} MB"))
            self._passed, self._rest = len(self._rest), b""
        return [line for line in found if line.strip()]
