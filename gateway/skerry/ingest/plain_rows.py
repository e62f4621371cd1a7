"""Rows of motes on their way to records of the log: what is the same for all rows of a query is found once, and records are made of all
rows together, field by field."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from skerry.storage.log.record import RECORD, Records
from skerry.streams.stream import Derived, Source, Stream


class Row(NamedTuple):
    """A record to be, whose ``value`` fields follow behind these."""

    place: int
    stream: int
    node: int
    epoch: int
    nulls: int
    sample: int
    motes: int
    revision: int


_FIELDS = [(at, name) for at, name in enumerate(Row._fields) if name != "place"]


class RowRecords:
    """Rows that have come together at ``arrival``, UTC in us."""

    def __init__(self, arrival: int) -> None:
        self.arrival = arrival
        self._count = 0
        #: By how many values they have.
        self._rows: dict[int, list[tuple[int, ...]]] = {}

    def add(
        self, stream: int, node: int, epoch: int, nulls: int, sample: int, values: tuple[int, ...], combined: int, left_out: int
    ) -> None:  # fmt: skip
        """One more."""
        rows = self._rows.get(len(values))
        if rows is None:
            rows = self._rows[len(values)] = []
        # A tally's counts end where 16 bits do.
        motes = combined if combined < 0xFFFF else 0xFFFF
        rows.append((self._count, stream, node, epoch, nulls, sample, motes, left_out, *values))
        self._count += 1

    def records(self) -> Records:
        """All, in the order they were added."""
        records = np.zeros(self._count, RECORD)
        records["arrival"] = self.arrival
        for width, rows in self._rows.items():
            table = np.array(rows, np.int64)
            places = table[:, 0] if len(self._rows) > 1 else slice(None)
            for at, name in _FIELDS:
                records[name][places] = table[:, at]
            for column in range(width):
                records["value"][places, column] = table[:, len(Row._fields) + column]
        return records


@dataclass(slots=True)
class QueryRows:
    """What the rows of a mote query mean that have come together. ``stream`` None: nobody knows the query, or its motes send states.
    ``views``: what the gateway makes of them."""

    source: Source
    stream: Stream | None
    layout: struct.Struct
    arrival: int
    views: Sequence[Derived] = ()
    _samples: dict[int, int] = field(default_factory=dict)

    def sample(self, epoch: int) -> int:
        """When the rows of an epoch were sampled, UTC in us: no later than they came, whatever the clocks say."""
        found = self._samples.get(epoch)
        if found is None:
            assert self.stream is not None
            utc = self.source.utc(epoch * self.stream.mote_query.period_ms)
            found = self.arrival if utc is None else min(round(utc * 1e6), self.arrival)
            self._samples[epoch] = found
        return found


class Layouts:
    """How the values of streams' rows lie in packets, found once for each."""

    def __init__(self) -> None:
        self._layouts: dict[int, struct.Struct] = {}

    def of(self, stream: Stream) -> struct.Struct:
        """A value behind the other, little-endian, as wide as its column says."""
        layout = self._layouts.get(stream.number)
        if layout is None:
            letters = "".join(column.format.letter for column in stream.mote_query.columns)
            layout = self._layouts[stream.number] = struct.Struct("<" + letters)
        return layout
