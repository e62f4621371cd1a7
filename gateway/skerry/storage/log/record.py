"""One record of the stream log: fixed width, little-endian, with a checksum against torn writes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from skerry_protocol.limits import FIELDS_MAXIMUM


class Kind(IntEnum):
    """What a record is."""

    #: A row of a mote.
    ROW = 0
    #: A partial state of an aggregate as it came, which ``node`` as root brought: nobody is told of it.
    PART = 1
    #: An epoch of an aggregate, or a group of it, as it is told: once.
    TOLD = 2
    #: … as it is since a partial state has come that was late: for those who ask for revisions.
    REVISED = 3
    #: Rows of a source that is no mote (:mod:`skerry.storage.log.source_batches`).
    SOURCES = 4


#: A row of a mote query. ``stream`` numbers the mote query (see catalog.json beside the log); ``value`` are its columns as they came,
#: bit i of ``nulls`` says that column i is NULL. Of aggregates ``count`` is how many values went in, ``motes`` how many motes were in
#: the epoch, in all its groups, ``wait`` for whom it is (:mod:`skerry.planner.model.waits`), and ``revision`` counts up when a late partial
#: state changes it; of plain rows ``motes`` is how many samples were combined in it, and ``revision`` how many rows its mote left out
#: before it. ``sample`` and ``arrival`` are UTC in us; the network time of the sample is ``epoch`` times the mote query's period.
_FIELDS: list[Any] = [
    ("stream", "<u4"),
    ("node", "<u2"),
    ("motes", "<u2"),
    ("epoch", "<u4"),
    ("nulls", "<u2"),
    ("revision", "<u2"),
    ("kind", "<u2"),
    ("wait", "<u4"),
    ("sample", "<i8"),
    ("arrival", "<i8"),
    ("value", "<i8", (FIELDS_MAXIMUM,)),
    ("count", "<u4", (FIELDS_MAXIMUM,)),
    ("checksum", "<u4"),
]
RECORD = np.dtype(_FIELDS)
_CHECKSUM_BYTES = 4

Records = npt.NDArray[np.void]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive records of the log; ``first`` is the number of the first."""

    first: int
    records: Records

    @property
    def end(self) -> int:
        """Number behind the last record."""
        return self.first + len(self.records)

    def behind(self, row: int) -> Block:
        """The part from row number ``row`` on."""
        skip = min(max(row - self.first, 0), len(self.records))
        return self if skip == 0 else Block(self.first + skip, self.records[skip:])

    def streams(self) -> list[tuple[int, Int64, Records]]:
        """See :func:`by_stream`."""
        return by_stream(np.arange(self.first, self.end, dtype=np.int64), self.records)


def by_stream(numbers: Int64, records: Records) -> list[tuple[int, Int64, Records]]:
    """(stream number, numbers of its rows, its records), for each stream of motes that occurs, without parts of what is told."""
    told = (records["kind"] != Kind.PART) & (records["kind"] != Kind.SOURCES)
    if not told.all():
        numbers, records = numbers[told], records[told]
    streams = records["stream"]
    if len(streams) and bool((streams == streams[0]).all()):
        return [(int(streams[0]), numbers, records)]
    parts = []
    for stream in np.unique(streams):
        chosen = streams == stream
        parts.append((int(stream), numbers[chosen], records[chosen]))
    return parts


def seal(records: Records) -> bytes:
    """Bytes of records, with their checksums set."""
    raw, width = memoryview(records.tobytes()), RECORD.itemsize
    ends = range(width - _CHECKSUM_BYTES, len(raw), width)
    records["checksum"] = [zlib.crc32(raw[end + _CHECKSUM_BYTES - width : end]) for end in ends]
    return records.tobytes()


def damaged(records: Records) -> Int64:
    """Places of records whose checksums are wrong."""
    found = [np.empty(0, np.int64)]
    for begin in range(0, len(records), _AT_ONCE):
        some = records[begin : begin + _AT_ONCE]
        found.append(begin + np.flatnonzero(_checksums(some) != some["checksum"]))
    return np.concatenate(found)


def _checksums(records: Records) -> npt.NDArray[np.uint32]:
    """What :func:`zlib.crc32` gives for each record, of all at once: a call for each takes more than twice the time."""
    raw = np.frombuffer(records.tobytes(), np.uint8).reshape(len(records), -1)
    sums = np.full(len(records), 0xFFFFFFFF, np.uint32)
    for pair in np.ascontiguousarray(raw[:, :-_CHECKSUM_BYTES].view("<u2").T):
        sums = _OF_PAIRS.take((sums ^ pair) & 0xFFFF) ^ (sums >> np.uint32(16))
    return ~sums


def _of_pairs() -> npt.NDArray[np.uint32]:
    """What two bytes make of a sum of IEEE 802.3, whose polynomial it is, lowest bit first."""
    sums = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(16):
        sums = np.where(sums & 1, (sums >> 1) ^ np.uint32(0xEDB88320), sums >> 1)
    return sums


_OF_PAIRS = _of_pairs()
#: So many records are looked at together that they stay in the processor's cache.
_AT_ONCE = 8192


def intact(record: bytes) -> bool:
    """Whether one record's checksum is right."""
    checksum = int.from_bytes(record[-_CHECKSUM_BYTES:], "little")
    return zlib.crc32(record[:-_CHECKSUM_BYTES]) == checksum
