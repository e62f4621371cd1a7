"""Rows of users that are no longer in memory, from the files of what executors have matched."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping

import pyarrow as pa

from skerry.delivery.matched_rows import Audience, MatchedRows, UserView
from skerry.delivery.matched_source_rows import MatchedSourceRows, SourceUser
from skerry.execution.blocks import batch_of, from_bytes
from skerry.execution.deliveries import Delivery, in_order
from skerry.execution.joined import ReadingGoneError
from skerry.execution.matched import MatchedBatch
from skerry.storage.block_files import BlockFiles
from skerry.streams.stream import Stream

#: Rows of the log after which a reader of older batches is asked whether he is still there.
_FAR = 1 << 18
#: Batches of files that are kept for the next reader.
_KEPT_BATCHES = 16
_NOBODY = Audience(())


class Unpacked:
    """Batches of files that were read last: mostly several readers are behind, and want the same ones. Asked from any thread."""

    def __init__(self) -> None:
        self._batches: dict[tuple[int, int], MatchedBatch] = {}
        self._lock = threading.Lock()

    def batch(self, first: int, end: int, blocks: Callable[[], bytes | None]) -> MatchedBatch | None:
        """Rows ``first`` .. ``end`` - 1; None: they are not there any more, or not whole."""
        with self._lock:
            batch = self._batches.pop((first, end), None)
        if batch is None:
            packed = blocks()
            try:
                batch = None if packed is None else batch_of(from_bytes(packed))
            except (ValueError, pa.ArrowException):
                # Whoever could not take it makes it come again.
                return None
            if batch is None or (batch.first, batch.end) != (first, end):
                return None
        with self._lock:
            self._batches[first, end] = batch
            while len(self._batches) > _KEPT_BATCHES:
                del self._batches[next(iter(self._batches))]
        return batch


class PublishedRows:
    """Asked from any thread. ``stream``: what a number means."""

    def __init__(self, files: BlockFiles, stream: Callable[[int], Stream | None]) -> None:
        self._files, self._stream = files, stream
        self._unpacked = Unpacked()

    def behind(
        self, position: int, views: Mapping[Hashable, object], version: int, most: int, through: int
    ) -> tuple[list[Delivery], int] | None:
        """Somebody's rows behind a position, and the position reached, at most that before row ``through``; of many the first ``most`` or
        some more. ``version``: of the users' index, from which on batches know what he asks.

        None: the next batch is in no file, or was matched before that.
        """
        begin = position
        found: list[Delivery] = []
        count = 0
        for first, end, blocks in self._files.behind(position):
            batch = self._unpacked.batch(first, end, blocks) if end <= through else None
            if batch is None or batch.version < version:
                break
            try:
                of_streams = self._by_stream(batch, views, position)
            except ReadingGoneError:
                break
            parts = [part for of_stream in of_streams.values() for part in of_stream]
            count += sum(len(part.numbers) for part in parts)
            found += in_order(parts) if len(of_streams) > 1 else parts
            position = end - 1
            if count >= most or position - begin >= _FAR:
                break
        return (found, position) if position > begin else None

    def _by_stream(
        self, batch: MatchedBatch, views: Mapping[Hashable, object], position: int
    ) -> dict[int, list[Delivery]]:
        """What a batch has for somebody behind a position, by stream. Raises ReadingGoneError."""
        found: dict[int, list[Delivery]] = {}
        for part in batch.parts:
            view = views.get(part.stream)
            rows = None
            if isinstance(view, UserView):
                rows = MatchedRows(part, self._stream, _NOBODY).delivery(view)
            elif isinstance(view, SourceUser):
                rows = MatchedSourceRows(part).delivery(view)
            if rows is not None and rows.numbers[-1] > position:
                found.setdefault(part.stream, []).append(rows.behind(position))
        return found
