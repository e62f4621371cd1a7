"""Bytes as they come → lines."""

from __future__ import annotations

#: A line is not longer than so many bytes.
LINE_BYTES = 1 << 20


class Lines:
    """What has no end yet waits for it."""

    def __init__(self) -> None:
        self.rest = b""

    def take(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete, but empty ones. ConnectionResetError: one is too long."""
        *found, self.rest = (self.rest + data).split(b"\n")
        if len(self.rest) > LINE_BYTES:
            self.rest = b""
            raise ConnectionResetError(f"a line is longer than {LINE_BYTES >> 20} MB")
        return [line for line in found if line.strip()]
