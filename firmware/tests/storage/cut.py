"""The firmware's storage in flash, in Python, over a memory from which power goes at a drawn step; and what it must hold."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache

from firmware.tests.query.host import FIRMWARE, TRAPS, build

SOURCES = (
    *sorted(path for path in (FIRMWARE / "storage").glob("*.c") if path.name != "tidy.c"),
    FIRMWARE / "lib" / "crc.c",
    FIRMWARE / "tests" / "storage" / "cut.c",
)
ATTRIBUTES = 6
NEVER = -1
PAGE_BYTES = 2048
_U8, _U16, _U32, _I32 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_int32


class Put(IntEnum):
    """enum tuples_put, and power that went."""

    CUT = -1
    STORED = 0
    KNOWN = 1
    LATER = 2
    NEVER = 3


class _Name(ctypes.Structure):
    _fields_ = (("mote", _U16), ("session", _U16), ("sequence", _U32))


class _Tuple(ctypes.Structure):
    _fields_ = (
        ("name", _Name), ("batch", _U16), ("attributes", _U8), ("nulls", _U8),
        ("values", _I32 * ATTRIBUTES),
    )  # fmt: skip


class _Box(ctypes.Structure):
    _fields_ = (("attributes", _U8), ("nulls", _U8), ("low", _I32 * ATTRIBUTES), ("high", _I32 * ATTRIBUTES))


class _Scan(ctypes.Structure):
    _fields_ = (("box", _Box), ("page", _U32), ("word", _U16), ("index", _U16))


class _Ring(ctypes.Structure):
    _fields_ = (("block", _U8), ("blocks", _U8), ("size", _U8))


class Statistics(ctypes.Structure):
    """struct tuples_statistics."""

    _fields_ = (
        ("capacity", _U32), ("used", _U32), ("tuples", _U32), ("evicted", _U32), ("erased_most", _U32),
        ("erased_sum", _U32), ("pages", _U8),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stored:
    """A tuple: its name, with which batch it was given, its values, None where NULL."""

    mote: int
    session: int
    sequence: int
    batch: int
    values: tuple[int | None, ...]

    def struct(self) -> _Tuple:
        """struct tuple."""
        nulls = sum(1 << i for i, value in enumerate(self.values) if value is None)
        values = (_I32 * ATTRIBUTES)(*(value or 0 for value in self.values))
        name = _Name(self.mote, self.session, self.sequence)
        return _Tuple(name, self.batch, len(self.values), nulls, values)


def _stored(tuple_: _Tuple) -> Stored:
    name = tuple_.name
    values = tuple(None if tuple_.nulls >> i & 1 else tuple_.values[i] for i in range(tuple_.attributes))
    return Stored(name.mote, name.session, name.sequence, tuple_.batch, values)


#: Of an attribute: from, to, and whether NULL is asked for as well.
Limits = tuple[int, int, bool]
EVERYTHING: Limits = (-(2**31), 2**31 - 1, True)


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(build("libskerry_storage.so", SOURCES, TRAPS, board="host")))
    library.cut_bytes.restype = library.tuples_count.restype = _U32
    library.cut_fill.restype = library.tuples_find.restype = library.tuples_first.restype = ctypes.c_bool
    return library


class Flash:
    """A mote's storage. What may be cut takes ``after``: so many steps later power goes, below 0 never."""

    def __init__(self, pages: int, seed: int) -> None:
        self._library, self._pages = _library(), pages
        self._library.cut_begin(_U8(pages), _U32(seed))

    def open(self, after: int = NEVER) -> bool:
        """The mote starts; false: power went."""
        return bool(self._library.cut_open(ctypes.c_long(after)) == 0)

    def tidy(self, after: int = NEVER) -> bool:
        """Erases a page where one has to be; false: power went."""
        return bool(self._library.cut_tidy(ctypes.c_long(after)) == 0)

    def append(self, index: int, stored: Stored, after: int = NEVER) -> Put:
        """Stores a tuple."""
        return Put(self._library.cut_append(_U16(index), ctypes.byref(stored.struct()), ctypes.c_long(after)))

    def give(self, index: int, stored: Stored, after: int = NEVER) -> bool:
        """Another mote has the tuple now; false: power went."""
        name = _Name(stored.mote, stored.session, stored.sequence)
        return bool(self._library.cut_give(_U16(index), ctypes.byref(name), ctypes.c_long(after)) == 0)

    def drop(self, index: int, after: int = NEVER) -> int:
        """Drops an index: 1 done, 0 later, -1 power went."""
        return int(self._library.cut_drop(_U16(index), ctypes.c_long(after)))

    def write_row(self, ring: tuple[int, int, int], place: int, row: bytes, after: int = NEVER) -> int:
        """Writes a storage point's row: 1 done, 0 later, -1 power went."""
        return int(self._library.cut_row(ctypes.byref(_Ring(*ring)), _U16(place), row, ctypes.c_long(after)))

    def read_row(self, ring: tuple[int, int, int], place: int) -> bytes:
        """A storage point's row."""
        row = ctypes.create_string_buffer(ring[2])
        self._library.rowstore_read(ctypes.byref(_Ring(*ring)), _U16(place), row)
        return row.raw

    def scan(
        self, index: int, limits: Sequence[Limits] | None = None, attributes: int = 2
    ) -> Iterator[Stored]:
        """The tuples of an index within limits, one for each attribute."""
        box, scan, met = _Box(), _Scan(), _Tuple()
        asked = limits if limits is not None else [EVERYTHING] * attributes
        box.attributes = len(asked)
        for i, (low, high, null) in enumerate(asked):
            box.low[i], box.high[i] = low, high
            box.nulls |= null << i
        self._library.tuples_scan_begin(ctypes.byref(scan), _U16(index), ctypes.byref(box))
        while (outcome := self._library.tuples_scan_next(ctypes.byref(scan), ctypes.byref(met))) != 2:
            if outcome == 0:
                yield _stored(met)

    def find(self, index: int, mote: int, session: int, sequence: int) -> Stored | None:
        """A tuple by its name."""
        found = _Tuple()
        name = _Name(mote, session, sequence)
        there = self._library.tuples_find(_U16(index), ctypes.byref(name), ctypes.byref(found))
        return _stored(found) if there else None

    def first(self, index: int) -> Stored | None:
        """That which was stored first of those that are left; None: there is none, or not yet."""
        found = _Tuple()
        there = self._library.tuples_first(_U16(index), ctypes.byref(found))
        return _stored(found) if there else None

    def forget_first(self, index: int) -> None:
        """Forgets what :meth:`first` has just found."""
        self._library.tuples_forget_first(_U16(index))

    def fill(self, index: int, until: int, since: int = 0) -> None:
        """Stores tuples 0, 1, … until there are so many; see cut_fill."""
        assert self._library.cut_fill(_U16(index), _U32(since), _U32(until))

    def count(self, index: int) -> int:
        """Tuples of an index."""
        return int(self._library.tuples_count(_U16(index)))

    def statistics(self) -> Statistics:
        """What the mote says of it."""
        statistics = Statistics()
        self._library.tuples_statistics(ctypes.byref(statistics))
        return statistics

    @property
    def untidy(self) -> bool:
        """Whether a page has to be erased."""
        return bool(self._library.log_untidy() & 1)

    @property
    def record_bytes(self) -> int:
        """What all records take."""
        return int(self._library.cut_bytes())

    @property
    def erasures(self) -> list[int]:
        """Of each page."""
        return list((_U32 * self._pages).in_dll(self._library, "cut_erasures"))

    @property
    def faults(self) -> int:
        """Writes to words that were not erased."""
        return int(_U32.in_dll(self._library, "cut_faults").value)

    @property
    def steps(self) -> int:
        """Words written and pages erased so far."""
        return int(_U32.in_dll(self._library, "cut_steps").value)

    def save(self) -> bytes:
        """All that flash holds."""
        held = ctypes.create_string_buffer(self._pages * PAGE_BYTES)
        self._library.cut_save(held)
        return held.raw

    def restore(self, held: bytes) -> None:
        """The same again."""
        self._library.cut_restore(held)


@dataclass
class Model:
    """What a mote's storage must hold: of each index what was stored since it was dropped, less the oldest; of each place of a ring what
    was written last."""

    tuples: dict[int, list[Stored]] = field(default_factory=dict)
    rows: dict[tuple[tuple[int, int, int], int], bytes] = field(default_factory=dict)

    def check(self, flash: Flash, attributes: int = 2) -> None:
        """Compares, and forgets what was evicted."""
        assert flash.faults == 0, "a word was written that was not erased"
        for index, stored in self.tuples.items():
            found = list(flash.scan(index, attributes=attributes))
            assert found == stored[len(stored) - len(found) :], index
            assert flash.count(index) == len(found)
            self.tuples[index] = found
        for (ring, place), row in self.rows.items():
            assert flash.read_row(ring, place) == row, (ring, place)
