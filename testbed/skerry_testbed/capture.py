"""Captures that Wireshark opens: pcap, link type 195 (IEEE 802.15.4 with FCS)."""

from __future__ import annotations

import struct
from pathlib import Path
from types import TracebackType

from skerry_testbed.core import AirFrame

LINKTYPE_IEEE802_15_4_WITHFCS = 195
_NANOSECOND_MAGIC = 0xA1B23C4D


class Capture:
    """A pcap file with ns time stamps; virtual time counts from 1970."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, path.open("wb")
        self._write(
            struct.pack("<IHHiIII", _NANOSECOND_MAGIC, 2, 4, 0, 0, 127, LINKTYPE_IEEE802_15_4_WITHFCS)
        )

    def add(self, frame: AirFrame) -> None:
        """Append one frame."""
        seconds, nanoseconds = divmod(frame.start_ns, 1_000_000_000)
        self._write(struct.pack("<IIII", seconds, nanoseconds, len(frame.psdu), len(frame.psdu)) + frame.psdu)

    def close(self) -> None:
        """Flush and close. Raises OSError, which names the file."""
        try:
            self._file.close()
        except OSError as error:
            raise self._named(error) from None

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise self._named(error) from None

    def _named(self, error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, str(self._path))

    def __enter__(self) -> Capture:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
