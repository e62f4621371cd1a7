"""What is wrong with bytes that should be a packet."""

from __future__ import annotations

from skerry_protocol.limits import PROTOCOL_VERSION


class VersionMismatchError(ValueError):
    """A peer speaks another protocol version."""

    def __init__(self, theirs: int) -> None:
        super().__init__(
            f"peer speaks protocol version {theirs}, this side version {PROTOCOL_VERSION}: "
            "flash the motes and install the gateway from the same release"
        )
        self.theirs = theirs


class PacketError(ValueError):
    """Bytes that are no packet; the message says what is wrong."""
