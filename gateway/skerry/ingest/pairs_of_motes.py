"""Joins of motes' rows with each other (:mod:`skerry.ingest.joined_rows`), one for each stream whose rows motes join."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from construct import Container

from skerry.ingest.joined_rows import JoinedRows
from skerry.streams.stream import Source, Stream
from skerry_protocol.codec import Result


@dataclass(frozen=True)
class Due:
    """Rows that meet here, and what :meth:`JoinedRows.done` is to be told once they are stored."""

    stream: Stream
    source: Source
    rows: list[Result]
    pairs: JoinedRows
    until: int


class PairsOfMotes:
    """Not for several threads at once."""

    def __init__(self) -> None:
        #: By number of the stream.
        self._joins: dict[int, tuple[Stream, Source, JoinedRows]] = {}

    def take(self, row: Result, stream: Stream, source: Source) -> None:
        """A mote's row that is to be joined here. PacketError: it is none of the stream's."""
        self._of(stream, source).take(row)

    def joined(self, body: Container[Any], stream: Stream, source: Source) -> Iterator[Result]:
        """Rows that motes have joined, but for those that wait. PacketError: they are none of the stream's."""
        yield from self._of(stream, source).joined(body)

    def passed(self, body: Container[Any], stream: Stream, source: Source) -> None:
        """How many rows a mote has had that others join."""
        self._of(stream, source).passed(body)

    def due(self, now_ms: int) -> Iterator[Due]:
        """Of each stream what meets here by now. ``now_ms``: network time, where its source does not say its own."""
        for number, (stream, source, pairs) in list(self._joins.items()):
            if source.stream_of(stream.query) is not stream:
                del self._joins[number]
                continue
            until, made = pairs.due(stream.query, now_ms if source.now_ms is None else source.now_ms())
            yield Due(stream, source, made, pairs, until)

    def find(self, query: int) -> JoinedRows | None:
        """What has come of a mote query whose rows motes join, since the start; None: nothing."""
        found = (pairs for stream, source, pairs in self._joins.values() if source.stream_of(query) is stream)
        return next(found, None)

    def _of(self, stream: Stream, source: Source) -> JoinedRows:
        if stream.number not in self._joins:
            self._joins[stream.number] = stream, source, JoinedRows(stream.mote_query)
        return self._joins[stream.number][2]
