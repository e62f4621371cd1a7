"""Rows that motes send out of order (QUEUE DELTA), held back until those sampled before them have had their time.

They are as durable as those in the log: a file beside it holds them, and a restart goes on with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from skerry.storage.log.record import RECORD, Records, damaged, intact, seal
from skerry.storage.log.stream_log import StreamLog
from skerry.storage.replacement import Replacement

log = logging.getLogger(__name__)

FILE = "held.rows"


class Reorder:
    """The rows held back. ``held`` tells of a stream its sample period and how long after their sample time its rows are held, both in
    ms; None: they need not wait."""

    def __init__(self, data: Path, held: Callable[[int], tuple[int, int] | None]) -> None:
        self._path = data / FILE
        self._held = held
        self.records: Records = self._recovered()

    def _recovered(self) -> Records:
        """What the file holds, without a torn tail and what a damaged disk has changed."""
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return np.empty(0, RECORD)
        size = RECORD.itemsize
        rows = len(raw) // size
        while rows and not intact(raw[(rows - 1) * size : rows * size]):
            rows -= 1
        found = np.frombuffer(raw[: rows * size], RECORD)
        changed = damaged(found)
        if len(changed):
            log.error("%s: %d of its %d rows are damaged and are left out", self._path, len(changed), rows)
        return np.delete(found, changed)

    def forget(self, known: Sequence[bool]) -> None:
        """After a restart: those that reached the log before it, as ``known`` tells of each, are not held."""
        there = np.array(known, np.bool_)
        if there.any():
            self._replace(self.records[~there])

    def take(self, records: Records, now_ms: int, log: StreamLog) -> None:
        """Take records in, and append to the log those that are due, oldest sample first. When it returns, all are durable.

        OSError: none of ``records`` was taken in."""
        before = self.records
        waits = self._waits(records, now_ms)
        if not len(before) and not waits.any():
            if len(records):
                log.append(records)
            return
        held = np.concatenate([before, records[waits]])
        due = ~self._waits(held, now_ms)
        # Stable: of one sample time, as they came.
        ordered = held[due][np.argsort(held[due]["sample"], kind="stable")]
        going = np.concatenate([records[~waits], ordered])
        if waits.any():
            self._replace(held)
        try:
            if len(going):
                log.append(going)
        except OSError:
            if waits.any():
                self._replace(before)
            raise
        if due.any():
            # What a crash leaves here that is in the log, too, is told by its tail at the restart.
            self._replace(held[~due])

    def _waits(self, records: Records, now_ms: int) -> npt.NDArray[np.bool_]:
        """Which of them are not due yet."""
        waits = np.zeros(len(records), np.bool_)
        for stream in np.unique(records["stream"]):
            held = self._held(int(stream))
            if held is not None:
                mine = records["stream"] == stream
                waits[mine] = records["epoch"][mine].astype(np.int64) * held[0] + held[1] > now_ms
        return waits

    def _replace(self, records: Records) -> None:
        with Replacement(self._path) as file:
            file.write(seal(records))
        self.records = records
