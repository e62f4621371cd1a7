"""Files of what users' windows hold behind a row of the log, from which a gateway that starts goes on: ``windows/`` in its data directory.

``<row>.windows`` has what rows before that one brought: a line with the format's version, a digest of all that follows, and the content,
which is :mod:`skerry.windows.snapshot`'s. A name appears with its whole content, durably, by rename. No answer depends on them: who finds
none that is as it was written makes windows of the log's rows again, which takes longer. Any file may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from skerry.storage.replacement import UNFINISHED, Replacement

DIRECTORY = "windows"
SUFFIX = ".windows"
#: So many are there at most: who is some seconds behind when a gateway starts finds his rows by an older one.
KEPT = 5
#: Bytes of the disk that they leave free: rows, which are stored but once, go before.
SPARE_BYTES = 64 << 20
_DIGEST_BYTES = 16


class WindowFileError(ValueError):
    """A file is not as it was written, or of another format; one line."""


class WindowFiles:
    """Those in a data directory. ``version``: of what they have. One thread writes, any reads."""

    def __init__(self, data: Path, version: int) -> None:
        self.path = data / DIRECTORY
        self._line = f"skerry windows {version}\n".encode()

    def rows(self) -> list[int]:
        """Of which rows there are some, oldest first."""
        try:
            names = os.listdir(self.path)
        except OSError:
            return []
        rows = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
        return sorted(int(row) for row in rows if row.isdecimal())

    def file(self, row: int) -> Path:
        """Of a row."""
        return self.path / f"{row:020d}{SUFFIX}"

    def save(self, row: int, content: bytes) -> None:
        """One more, in place of the oldest. Raises OSError: it is not there."""
        self.path.mkdir(exist_ok=True)
        disk = os.statvfs(self.path)
        if disk.f_bavail * disk.f_frsize < SPARE_BYTES + len(content):
            raise OSError(f"{self.path}: its disk has less than {SPARE_BYTES >> 20} MB left")
        with Replacement(self.file(row)) as out:
            out.write(self._line)
            out.write(_digest(content))
            out.write(content)
        for old in self.rows()[:-KEPT]:
            self.drop(old)

    def load(self, row: int) -> bytes:
        """What :meth:`save` was given. Raises WindowFileError; OSError: it cannot be read."""
        data = self.file(row).read_bytes()
        line, _, rest = data.partition(b"\n")
        if line + b"\n" != self._line:
            raise WindowFileError(f"it begins with {line[:40]!r}, not {self._line.decode().strip()!r}")
        digest, content = rest[:_DIGEST_BYTES], rest[_DIGEST_BYTES:]
        if digest != _digest(content):
            raise WindowFileError("its digest is that of another content")
        return content

    def drop(self, row: int) -> None:
        """One that is of no use."""
        with suppress(OSError):
            self.file(row).unlink()

    def drop_unfinished(self) -> None:
        """What a gateway that was killed was writing."""
        for file in self.path.glob(f"*{UNFINISHED}"):
            with suppress(OSError):
                file.unlink()


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
