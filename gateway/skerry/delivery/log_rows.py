"""Rows of motes as the log has them, by stream, and what their times have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from skerry.execution.matching import Part
from skerry.execution.residual import Rows
from skerry.execution.stream_batches import stream_batch
from skerry.storage.log.record import RECORD, Block
from skerry.streams.stream import Stream

#: Rows of the log read at a time.
STEP = 65_536


class LogRows:
    """Of one log. ``stream``: what a number means; ``read``: rows of the log from .. to - 1, those that it still has; ``compacted``: those
    that it has no longer, of plain streams with some attributes; ``speed``: s of network time in one of UTC's."""

    def __init__(
        self,
        stream: Callable[[int], Stream | None],
        read: Callable[[int, int], Block] | None,
        compacted: Callable[[int, int, Collection[int]], Mapping[int, Part]] | None,
        speed: float,
    ) -> None:
        self.stream, self._compacted, self.speed = stream, compacted, speed
        self.read = read or (lambda start, _: Block(start, np.empty(0, RECORD)))

    def utc(self, number: int, network_ms: int) -> int:
        """A stream's network time as that which networks have in common, in ms; where the log was begun without, network time, which
        is long ago."""
        stream = self.stream(number)
        if stream is None or stream.since_utc_ms is None:
            return network_ms
        return round(stream.since_utc_ms * self.speed) + network_ms - stream.since_ms

    def session(self, number: int) -> int | None:
        """The session of the network that a stream is of."""
        stream = self.stream(number)
        return None if stream is None else stream.session

    def parts(self, block: Block) -> dict[int, Part]:
        """The rows by stream; rows of streams that nobody knows are left out."""
        parts = {}
        for number, rows, records in block.streams():
            stream = self.stream(number)
            if stream is not None:
                part = parts[number] = Part(Rows(stream_batch(records, stream), stream.mote_query), rows)
                part.rows.sessions = np.full(len(rows), stream.session)
        return parts

    def pieces(self, start: int, end: int, attributes: Collection[int]) -> Iterator[Mapping[int, Part]]:
        """Rows of the log from .. to - 1 with these attributes at least, some at a time: what has left the log, from the
        files that it was compacted to."""
        for at in range(start, end, STEP):
            upto = min(at + STEP, end)
            block = self.read(at, upto)
            if block.first > at and self._compacted is not None:
                yield self._compacted(at, min(block.first, upto), attributes)
            yield self.parts(block)
