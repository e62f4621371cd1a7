"""Captures that Wireshark opens: pcap, link type 195 (IEEE 802.15.4 with FCS)."""

from __future__ import annotations

import heapq
import struct
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from skerry_testbed.core import AirFrame

LINKTYPE_IEEE802_15_4_WITHFCS = 195
_NANOSECOND_MAGIC = 0xA1B23C4D
#: The longest frame on the air, in ns: 133 bytes from the preamble on, of 32 us each.
_LONGEST_NS = 133 * 32_000


class Capture:
    """A pcap file with ns time stamps in ascending order; virtual time counts from 1970."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, path.open("wb")
        #: Frames that one which began before them may still be on the air with: a capture goes by beginnings, the core by ends.
        self._waiting: list[tuple[int, int, bytes]] = []
        self._count = 0
        self._write(
            struct.pack("<IHHiIII", _NANOSECOND_MAGIC, 2, 4, 0, 0, 127, LINKTYPE_IEEE802_15_4_WITHFCS)
        )

    def add(self, frame: AirFrame) -> None:
        """Append one frame. Frames come in the order in which they end."""
        self._count += 1
        heapq.heappush(self._waiting, (frame.start_ns, self._count, frame.psdu))
        self._write_until(frame.end_ns - _LONGEST_NS)

    def _write_until(self, before_ns: float) -> None:
        while self._waiting and self._waiting[0][0] < before_ns:
            start_ns, _, psdu = heapq.heappop(self._waiting)
            seconds, nanoseconds = divmod(start_ns, 1_000_000_000)
            self._write(struct.pack("<IIII", seconds, nanoseconds, len(psdu), len(psdu)) + psdu)

    def close(self) -> None:
        """Flush and close. Raises OSError, which names the file."""
        try:
            self._write_until(float("inf"))
            self._file.close()
        except OSError as error:
            with suppress(OSError):
                self._file.close()
            raise self._named(error) from None

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise self._named(error) from None

    def _named(self, error: OSError) -> OSError:
        return error if error.filename is not None else OSError(error.errno, error.strerror, str(self._path))

    def __enter__(self) -> Capture:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
