"""Packets of GDB's remote serial protocol (GDB manual, E.1): ``$data#checksum``, acknowledged by ``+`` until both sides do without."""

from __future__ import annotations

#: Ctrl-C in GDB, outside packets.
INTERRUPT = b"\x03"
#: Longest packet that GDB is told to send.
PACKET_BYTES = 4096
#: More bytes than this without a whole packet are nothing that GDB says.
_LONGEST = 4 * PACKET_BYTES
_ESCAPE = 0x7D
_ESCAPED = b"#$}*"


class NoPacketError(ValueError):
    """Whoever sends this is no GDB."""


def _checksum(body: bytes) -> bytes:
    return b"%02x" % (sum(body) & 0xFF)


def packet(data: bytes) -> bytes:
    """The bytes for a packet with this content."""
    body = bytearray()
    for byte in data:
        body += bytes((_ESCAPE, byte ^ 0x20)) if byte in _ESCAPED else bytes((byte,))
    return b"$" + body + b"#" + _checksum(bytes(body))


def _unescaped(body: bytes) -> bytes:
    data = bytearray()
    escaped = False
    for byte in body:
        if byte == _ESCAPE and not escaped:
            escaped = True
            continue
        data.append(byte ^ 0x20 if escaped else byte)
        escaped = False
    return bytes(data)


class Reader:
    """Cuts what GDB sends into packets."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        #: Whether packets are to be acknowledged; both sides may agree not to.
        self.acknowledged = True

    def feed(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Contents of the packets that are whole now, ``INTERRUPT`` among them, and what acknowledges them.
        Raises NoPacketError."""
        self._bytes += data
        found: list[bytes] = []
        answer = bytearray()
        while self._bytes:
            if self._bytes.startswith(INTERRUPT):
                del self._bytes[:1]
                found.append(INTERRUPT)
            elif self._bytes.startswith((b"+", b"-")):
                # On TCP nothing is lost that would have to be sent again.
                del self._bytes[:1]
            elif not self._bytes.startswith(b"$"):
                raise NoPacketError(f"{bytes(self._bytes[:16])!r} begins no packet")
            else:
                end = self._bytes.find(b"#")
                if end < 0 or len(self._bytes) < end + 3:
                    break
                body, told = bytes(self._bytes[1:end]), bytes(self._bytes[end + 1 : end + 3])
                del self._bytes[: end + 3]
                right = told.lower() == _checksum(body)
                if self.acknowledged:
                    answer += b"+" if right else b"-"
                if right:
                    found.append(_unescaped(body))
        if len(self._bytes) > _LONGEST:
            raise NoPacketError(f"{len(self._bytes)} bytes without the end of a packet")
        return found, bytes(answer)
