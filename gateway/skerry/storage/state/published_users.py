"""Users' names by the digests of their tokens, for processes that serve readers: ``users-XX.json`` in ``published/``, of digests that begin
with the byte XX, so that one more user of a hundred thousand writes one small file.

Made of the database, as all there. Only their owner may read them. No token can be made of its digest: a token is 256 random bits, which
nobody goes through, so that neither salt nor a slow function is needed.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from skerry.storage.replacement import UNFINISHED
from skerry.storage.state.errors import StorageError
from skerry.storage.state.published import DIRECTORY

log = logging.getLogger(__name__)

#: A user who is known is looked for again after so long, in s: who was removed is out.
REREAD_S = 1.0


def _name_of(first: int) -> str:
    return f"users-{first:02x}.json"


class UsersPublisher:
    """Writes them. Not locked: its owner calls it under his lock."""

    def __init__(self, data: Path) -> None:
        self._directory = data / DIRECTORY
        #: First bytes of digests whose files are not yet as they are to be.
        self._due: set[int] = set()

    def publish(
        self, changed: Iterable[int], users: Callable[[int], Mapping[bytes, str]], *, everything: bool = False
    ) -> None:
        """Write the files of these first bytes; ``users``: those of one by their digests. ``everything``: all files are made anew.
        StorageError: it is tried again with the next change."""
        self._due.update(changed)
        try:
            self._directory.mkdir(exist_ok=True)
            if everything:
                self._due.update(range(256))
            for first in sorted(self._due):
                self._write(first, users(first))
            self._due.clear()
        except OSError as error:
            # Somebody may have taken any of them away.
            self._due.update(range(256))
            raise StorageError(f"{error.filename or self._directory}: {error.strerror}") from None

    def _write(self, first: int, users: Mapping[bytes, str]) -> None:
        file = self._directory / _name_of(first)
        if not users:
            file.unlink(missing_ok=True)
            return
        unfinished = file.with_name(file.name + UNFINISHED)
        unfinished.unlink(missing_ok=True)
        inner = ",\n".join(
            f"{json.dumps(digest.hex())}: {json.dumps(name)}" for digest, name in users.items()
        )
        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as out:
                out.write(f"{{{inner}}}\n")
            unfinished.replace(file)
        except OSError:
            with suppress(OSError):
                unfinished.unlink()
            raise


@dataclass
class _Seen:
    """A file as it was last read, when it was looked at, and why it cannot be read now."""

    looked: float = -REREAD_S
    stamp: tuple[int, int, int] | None = None
    users: dict[str, str] = field(default_factory=dict)
    trouble: str | None = None


class PublishedUsers:
    """Reads them, in any thread."""

    def __init__(self, data: Path) -> None:
        self._directory = data / DIRECTORY
        self._files = [_Seen() for _ in range(256)]
        self._lock = threading.Lock()

    def of(self, digest: bytes) -> str | None:
        """Whose token has this digest; None: nobody's."""
        seen, key = self._files[digest[0]], digest.hex()
        with self._lock:
            # One who has just been added is not refused.
            if key not in seen.users or time.monotonic() - seen.looked >= REREAD_S:
                self._look(seen, self._directory / _name_of(digest[0]))
            return seen.users.get(key)

    def _look(self, seen: _Seen, file: Path) -> None:
        seen.looked = time.monotonic()
        try:
            there = file.stat()
            stamp = there.st_ino, there.st_mtime_ns, there.st_size
            if stamp != seen.stamp:
                seen.users, seen.stamp = json.loads(file.read_bytes()), stamp
        except FileNotFoundError:
            seen.users, seen.stamp = {}, None
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else f"not as the gateway wrote it ({error})"
            # Once, not each time that it is looked at.
            if said != seen.trouble:
                log.error("%s: %s; the users read before stay", file, said)
            seen.trouble, seen.stamp = said, None
            return
        seen.trouble = None
