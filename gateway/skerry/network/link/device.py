"""A serial device, for one program at a time.

Two gateways on one device take each other's bytes and reset each other's numbering: each would lose half of its rows, and neither
could know why. The lock is flock's, as pyserial's and other terminal programs' is, and goes with the process that has it.
"""

from __future__ import annotations

import os
from pathlib import Path

import serial

from skerry_protocol.framing import BAUD

_LOCKS = Path("/proc/locks")
_COMMAND_CHARACTERS = 80


def opened(path: str) -> serial.Serial:
    """The device, locked until it is closed. Raises ValueError where another program has it locked; SerialException, OSError."""
    try:
        return serial.Serial(path, BAUD, timeout=0, exclusive=True)
    except serial.SerialException as error:
        if "exclusively lock" not in str(error):
            raise
        raise ValueError(f"{_holder(path)} has it: end that, or name another device") from None


def _holder(path: str) -> str:
    """Who has a device locked, as far as the system says."""
    device = os.stat(path)
    found = f"{os.major(device.st_dev):02x}:{os.minor(device.st_dev):02x}:{device.st_ino}"
    try:
        locks = [line.split() for line in _LOCKS.read_text().splitlines()]
        # 1: FLOCK ADVISORY WRITE 4711 00:05:123 0 EOF
        process = next(int(lock[4]) for lock in locks if lock[1] == "FLOCK" and lock[5] == found)
        command = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (OSError, StopIteration, IndexError, ValueError):
        return "another program"
    shown = " ".join(command.split())[:_COMMAND_CHARACTERS]
    return f"process {process} ({shown})"
