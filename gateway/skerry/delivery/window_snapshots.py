"""When shared windows are written to a file, and from which one a gateway that starts goes on."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from skerry.storage.window_files import WindowFileError, WindowFiles
from skerry.windows.snapshot import VERSION, Capture, Snapshot

log = logging.getLogger(__name__)

#: Rows times selections of windows that may have to be folded again when the gateway starts, about 0.3 us each.
AGAIN_MAXIMUM = 10_000_000
#: Between two files at least, in s; and bytes of them that are written in a second at most.
LEAST_S = 10.0
BYTES_PER_S = 1 << 20


class WindowSnapshots:
    """Those in a data directory. :meth:`due` and :meth:`keep` are one thread's."""

    def __init__(self, data: Path) -> None:
        self._files = WindowFiles(data, VERSION)
        self._row, self._next = 0, 0.0
        self._writing: threading.Thread | None = None
        self._trouble: str | None = None
        self._lock = threading.Lock()
        #: The one read last: of many readers who are behind most want the same.
        self._read: Snapshot | None = None

    # ---- writing ----

    def due(self, row: int, shared: int) -> bool:
        """Whether windows of so many selections, of all rows before this one, are to be kept."""
        if (row - self._row) * shared < AGAIN_MAXIMUM // 2 or time.monotonic() < self._next:
            return False
        return self._writing is None or not self._writing.is_alive()

    def keep(self, captured: Capture) -> None:
        """Write them, in a thread of its own."""
        self._row, self._next = captured.row, time.monotonic() + LEAST_S
        self._writing = threading.Thread(target=self._write, args=(captured,), name="windows", daemon=True)
        self._writing.start()

    def _write(self, captured: Capture) -> None:
        content = captured.snapshot().to_bytes()
        self._next = time.monotonic() + max(LEAST_S, len(content) / BYTES_PER_S)
        try:
            self._files.save(captured.row, content)
        except OSError as error:
            if self._trouble != str(error):
                log.warning("windows are not kept, and a restart makes them of rows again: %s", error)
            self._trouble = str(error)
            return
        self._trouble = None

    def wait(self) -> None:
        """Until what is being written is there."""
        if self._writing is not None:
            self._writing.join()

    # ---- reading ----

    def begin(self, rows: int) -> Snapshot | None:
        """Where to go on when a gateway starts with so many rows in its log; None: there is nothing, or nothing that is whole.

        Not with the newest where an older one costs little more: a reader who was a moment behind finds his rows in memory then.
        """
        self._files.drop_unfinished()
        found: Snapshot | None = None
        for row in reversed(self._files.rows()):
            if found is not None and (rows - row) * len(found.shared) > AGAIN_MAXIMUM:
                break
            kept = self._load(row, rows)
            found = kept if kept is not None else found
        self._row = found.row if found is not None else 0
        self._read = found
        return found

    def before(self, row: int) -> Snapshot | None:
        """The newest of no row behind this one; from any thread."""
        there = [kept for kept in self._files.rows() if kept <= row]
        with self._lock:
            if there and (self._read is None or self._read.row != there[-1]):
                self._read = self._load(there[-1], row) or self._read
            return self._read if self._read is not None and self._read.row <= row else None

    def _load(self, row: int, rows: int) -> Snapshot | None:
        """One of them, where the log has ``rows``. One that is not as it was written is taken away, and said."""
        try:
            kept = Snapshot.from_bytes(self._files.load(row))
            if kept.row != row or row > rows:
                raise WindowFileError(f"it is of {kept.row:,} rows, and the log has {rows:,}")
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning("%s", error)
            return None
        except ValueError as error:
            log.warning(
                "%s: %s; it is taken away, and windows are made of rows again from an older file on, or from where queries began",
                self._files.file(row),
                error,
            )
            self._files.drop(row)
            return None
        return kept
