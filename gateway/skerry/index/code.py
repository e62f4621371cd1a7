"""The motes' arithmetic of data-centric storage, ``firmware/index``: their own C in a shared library."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from skerry.built_library import load

ATTRIBUTES, BITS, LAST, NULL = 6, 32, 65534, 65535

_U8, _U16, _U32, _I32 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_int32


class Field(ctypes.Structure):
    """struct zone_field."""

    _fields_ = (("left", _I32), ("bottom", _I32), ("right", _I32), ("top", _I32))

    @property
    def sides(self) -> tuple[int, int, int, int]:
        """Left, bottom, right, top."""
        return self.left, self.bottom, self.right, self.top


class Zone(ctypes.Structure):
    """struct zone."""

    _fields_ = (("code", _U32), ("length", _U8))

    @property
    def codes(self) -> range:
        """All codes of the zone."""
        return range(self.code, self.code + (1 << (BITS - self.length)))


class Owned(ctypes.Structure):
    """struct zone_owned."""

    _fields_ = (("code", _U32), ("any", _U32))


class Range(ctypes.Structure):
    """struct index_range."""

    _fields_ = (("low", _I32), ("high", _I32))


class Box(ctypes.Structure):
    """struct index_box."""

    _fields_ = (("attributes", _U8), ("low", _U16 * ATTRIBUTES), ("high", _U16 * ATTRIBUTES))

    def of(self, attributes: Sequence[int]) -> Box:
        """The same of some of its attributes, in this order."""
        box = Box(len(attributes))
        for place, attribute in enumerate(attributes):
            box.low[place], box.high[place] = self.low[attribute], self.high[attribute]
        return box


class _Walk(ctypes.Structure):
    _fields_ = (("box", ctypes.POINTER(Box)), ("next", Zone), ("depth", _U8), ("done", ctypes.c_bool))


class Position(ctypes.Structure):
    """struct index_position."""

    _fields_ = (("x", _I32), ("y", _I32))


class Part(ctypes.Structure):
    """struct index_part."""

    _fields_ = (("area", Field), ("motes", _U16))


class _Histogram(ctypes.Structure):
    _fields_ = (("attributes", _U8), ("bins", _U8), ("counts", ctypes.c_char_p))


class Stop(ctypes.Structure):
    """struct order_stop."""

    _fields_ = (
        ("attributes", _U8), ("x", _I32), ("y", _I32), ("gather", _U32), ("spread", _U32), ("owners", _U16),
    )  # fmt: skip


class Load(ctypes.Structure):
    """struct order_load."""

    _fields_ = (("hop", _U16), ("name", _U8), ("value", _U8), ("measured", _U8), ("state", _U8))


class _Counts(ctypes.Structure):
    _fields_ = (("matching", _U32 * (1 << ATTRIBUTES)),)


class CacheEntry(ctypes.Structure):
    """struct cache_entry."""

    _fields_ = (
        ("tuple", _U32), ("code", _U32), ("value", _I32), ("attribute", _U8), ("is_null", ctypes.c_bool),
    )  # fmt: skip


class Cache(ctypes.Structure):
    """struct join_cache."""

    _fields_ = (("entries", ctypes.POINTER(CacheEntry)), ("room", _U16), ("count", _U16))


@dataclass(frozen=True)
class Histogram:
    """Counts as a mote has them."""

    attributes: int
    bins: int
    counts: bytes

    @property
    def struct(self) -> _Histogram:
        """struct histogram; its bytes live as long as it does."""
        return _Histogram(self.attributes, self.bins, self.counts)


@cache
def motes_code() -> IndexCode:
    """What the gateway plans with. Raises LibraryError where it is not built."""
    return IndexCode(load("libskerry_index.so"))


class IndexCode:
    """Functions of the library, as Python has values."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        for name, kind in {
            "zone_code": _U32, "zone_leave": ctypes.c_bool, "zone_of_owner": Zone, "index_point": _U16,
            "index_code": _U32, "index_box_limit": ctypes.c_bool, "index_asks_owner": ctypes.c_bool,
            "index_walk_next": ctypes.c_bool, "index_partition": ctypes.c_bool, "histogram_bytes": _U32,
            "histogram_bins": _U8, "histogram_check": ctypes.c_bool, "histogram_count": _U32,
            "histogram_coded": _U8, "histogram_bin": _U8, "histogram_place": _U32, "histogram_estimate": _U32,
            "order_cost": ctypes.c_uint64, "order_best": ctypes.c_uint64, "cache_put": ctypes.c_bool,
            "cache_get": ctypes.POINTER(CacheEntry), "cache_owned": _U16,
        }.items():  # fmt: skip
            getattr(library, name).restype = kind
        library.zone_code.argtypes = (ctypes.POINTER(Field), _I32, _I32)

    def zone_code(self, field: Field, x: int, y: int) -> int:
        """Code of a position."""
        return int(self.library.zone_code(field, x, y))

    def zone_area(self, field: Field, zone: Zone) -> Field:
        """Rectangle of a zone."""
        area = Field()
        self.library.zone_area(ctypes.byref(field), ctypes.byref(zone), ctypes.byref(area))
        return area

    def owned(self, code: int, others: Iterable[int]) -> Owned:
        """What the mote with this code owns beside others."""
        owned = Owned()
        self.library.zone_own_all(ctypes.byref(owned), _U32(code))
        for other in others:
            self.leave(owned, other)
        return owned

    def leave(self, owned: Owned, other: int) -> bool:
        """There is another mote; False where it has the same code."""
        return bool(self.library.zone_leave(ctypes.byref(owned), _U32(other)))

    def zone_of_owner(self, owned: Owned) -> Zone:
        """The zone that it is in alone."""
        zone: Zone = self.library.zone_of_owner(ctypes.byref(owned))
        return zone

    def point(self, range_: Range, value: int | None) -> int:
        """Point of a value."""
        return NULL if value is None else int(self.library.index_point(ctypes.byref(range_), _I32(value)))

    def code(self, points: Sequence[int]) -> int:
        """Code of a tuple."""
        return int(self.library.index_code((_U16 * len(points))(*points), _U8(len(points))))

    def box(self, attributes: int, limits: Mapping[int, tuple[int, int]] | None = None) -> Box:
        """What is asked, in points; of attributes without limits all."""
        box = Box()
        self.library.index_box_all(ctypes.byref(box), _U8(attributes))
        for attribute, (low, high) in (limits or {}).items():
            box.low[attribute], box.high[attribute] = low, high
        return box

    def limit(self, box: Box, attribute: int, range_: Range, low: int, high: int) -> bool:
        """Only values from low to high."""
        return bool(
            self.library.index_box_limit(
                ctypes.byref(box), _U8(attribute), ctypes.byref(range_), _I32(low), _I32(high)
            )
        )

    def asks(self, box: Box, owned: Owned) -> bool:
        """Whether the mote is asked."""
        return bool(self.library.index_asks_owner(ctypes.byref(box), ctypes.byref(owned)))

    def walk(self, box: Box, depth: int) -> list[Zone]:
        """The zones that are asked."""
        walk, found = _Walk(), []
        self.library.index_walk_begin(ctypes.byref(walk), ctypes.byref(box), _U8(depth))
        zone = Zone()
        while self.library.index_walk_next(ctypes.byref(walk), ctypes.byref(zone)):
            found.append(Zone(zone.code, zone.length))
        return found

    def partition(
        self, field: Field, positions: Sequence[tuple[int, int]], weights: Sequence[int]
    ) -> list[Part] | None:
        """The field's parts; None where it cannot be cut so."""
        found = (Part * max(1, len(weights)))()
        whole = self.library.index_partition(
            ctypes.byref(field), (Position * len(positions))(*(Position(x, y) for x, y in positions)), _U16(len(positions)),
            (_U8 * len(weights))(*weights), _U8(len(weights)), found,
        )  # fmt: skip
        return list(found)[: len(weights)] if whole else None

    def bin(self, bins: int, point: int) -> int:
        """The bin of a point."""
        return int(self.library.histogram_bin(_U8(bins), _U16(point)))

    def coded(self, count: int) -> int:
        """A histogram's byte for a count."""
        return int(self.library.histogram_coded(_U32(count)))

    def estimate(self, histogram: Histogram, box: Box, of: int) -> int:
        """Tuples in a box."""
        struct = histogram.struct
        return int(self.library.histogram_estimate(ctypes.byref(struct), ctypes.byref(box), _U8(of)))

    def stop(self, part: Part, attributes: int, box: Box, hop: int, *, everywhere: bool = False) -> Stop:
        """How far what is asked of a part lies."""
        stop = Stop()
        self.library.order_stop(
            ctypes.byref(stop),
            ctypes.byref(part),
            _U8(attributes),
            ctypes.byref(box),
            _U16(hop),
            ctypes.c_bool(everywhere),
        )
        return stop

    def plan(self, stops: Sequence[Stop], load: Load) -> Plan:
        """Orders of these stops; tuples are to be counted first."""
        return Plan(self.library, (Stop * len(stops))(*stops), len(stops), load, _Counts())


@dataclass
class Plan:
    """A query's stops and how many tuples match where."""

    library: Any
    stops: Any
    count: int
    load: Load
    counts: _Counts

    def estimate(self, histogram: Histogram, box: Box) -> Plan:
        """Count as the histogram says."""
        struct = histogram.struct
        self.library.order_count(
            ctypes.byref(self.counts), self.stops, _U8(self.count), ctypes.byref(struct), ctypes.byref(box)
        )
        return self

    def know(self, matching: Sequence[int]) -> Plan:
        """Tuples by a bit for each stop."""
        self.counts.matching[: len(matching)] = list(matching)
        return self

    def cost(self, order: Sequence[int]) -> int:
        """What an order costs."""
        return int(
            self.library.order_cost(
                self.stops, (_U8 * self.count)(*order), _U8(self.count), ctypes.byref(self.counts),
                ctypes.byref(self.load),
            )
        )  # fmt: skip

    def best(self) -> tuple[int, tuple[int, ...]]:
        """The cheapest order, and what it costs."""
        order = (_U8 * ATTRIBUTES)()
        cost = self.library.order_best(
            self.stops, _U8(self.count), ctypes.byref(self.counts), ctypes.byref(self.load), order
        )
        return int(cost), tuple(order[: self.count])
