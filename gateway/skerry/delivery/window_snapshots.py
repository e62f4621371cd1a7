"""When windows are written to a file, and from which one a gateway that starts goes on."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from skerry.storage.window_files import WindowFileError, WindowFiles
from skerry.windows.snapshot import VERSION, Capture, Snapshot

log = logging.getLogger(__name__)

#: Rows times selections of windows that may have to be folded again when the gateway starts, about 0.3 us each.
AGAIN_MAXIMUM = 2_000_000
#: So many times as long takes a row of windows that a query has for itself: it is read for it alone, and joined; and a record of sources
#: that are no motes, which has several rows.
OWN_TIMES, SOURCE_TIMES = 15, 150
#: Between two files at least, in s; so many times as long as it took to make the last one; and bytes of them that are written in a second
#: at most.
LEAST_S = 2.0
TIMES_AS_LONG = 20
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

    def due(self, row: int, shared: int, of_sources: int = 0, own: int = 0) -> bool:
        """Whether windows of so many selections, of all rows before this one, are to be kept; ``own``: rows that have come since into
        windows that queries have for themselves."""
        again = (row - self._row) * (shared + SOURCE_TIMES * of_sources) + OWN_TIMES * own
        if again < AGAIN_MAXIMUM // 2 or time.monotonic() < self._next:
            return False
        return self._writing is None or not self._writing.is_alive()

    def keep(self, captured: Capture) -> None:
        """Write them, in a thread of its own."""
        self._row, self._next = captured.row, time.monotonic() + LEAST_S
        self._writing = threading.Thread(target=self._write, args=(captured,), name="windows", daemon=True)
        self._writing.start()

    def _write(self, captured: Capture) -> None:
        began = time.thread_time()
        content = captured.snapshot().to_bytes()
        try:
            self._files.save(captured.row, content)
        except OSError as error:
            if self._trouble != str(error):
                log.warning("windows are not kept, and a restart makes them of rows again: %s", error)
            self._trouble = str(error)
        else:
            self._trouble = None
        pause = max(LEAST_S, TIMES_AS_LONG * (time.thread_time() - began), len(content) / BYTES_PER_S)
        self._next = time.monotonic() + pause

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
        # The first rows do not wait for a file.
        self._next = time.monotonic() + LEAST_S
        found: Snapshot | None = None
        for row in reversed(self._files.rows()):
            if found is not None and (rows - row) * _weight(found) > AGAIN_MAXIMUM:
                break
            kept = self._load(row, rows)
            found = kept if kept is not None else found
        self._row = found.row if found is not None else 0
        self._read = found
        return found

    def whole(self, rows: int) -> list[Snapshot]:
        """All that are whole, newest first, when a gateway starts with so many rows."""
        self._files.drop_unfinished()
        found = (self._load(row, rows) for row in reversed(self._files.rows()))
        return [kept for kept in found if kept is not None]

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


def _weight(kept: Snapshot) -> int:
    """How long a row takes that comes into it."""
    return len(kept.shared) + SOURCE_TIMES * len(kept.sources)
