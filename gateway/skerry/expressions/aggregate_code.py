"""The motes' aggregates run here: their C code in a shared library, as ``firmware/query/operators/aggregate.h`` declares it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from skerry.built_library import load
from skerry_protocol.codes import Aggregate

#: (count, value), of motes in 16 and 32 bits, at the gateway in 32 and 64; value None: it left these, and means nothing.
Cell = tuple[int, int | None]
State = Sequence[Cell]

_NAME = "libskerry_aggregates.so"
#: AVG is a sum that the gateway divides.
_NAMES_IN_C = {Aggregate.AVG: "sum", Aggregate.MIN: "minimum", Aggregate.MAX: "maximum"}


class CellOfC(ctypes.LittleEndianStructure):
    """struct wire_aggregate_state."""

    _pack_ = 1
    _fields_ = (("count", ctypes.c_uint16), ("value", ctypes.c_int32))


_INITIALISE = ctypes.CFUNCTYPE(None, ctypes.POINTER(CellOfC), ctypes.c_uint8, ctypes.c_int32, ctypes.c_uint16)
_MERGE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(CellOfC), ctypes.POINTER(CellOfC), ctypes.c_uint8)


class _Struct(ctypes.Structure):
    """struct aggregate."""

    _fields_ = (("cells", ctypes.c_uint8), ("initialise", _INITIALISE), ("merge", _MERGE))


@dataclass(frozen=True)
class AggregateCode:
    """One aggregate's functions."""

    initialise_cells: Any
    merge_cells: Any

    @classmethod
    def of(cls, library: ctypes.CDLL, name: str) -> AggregateCode:
        """``aggregate_<name>`` of a library. Raises ValueError where it is not there."""
        code = _Struct.in_dll(library, f"aggregate_{name}")
        return cls(code.initialise, code.merge)

    def initial(self, cells: int, reading: int, mote: int) -> list[Cell]:
        """The state of so many cells over one reading of a mote."""
        state = (CellOfC * cells)()
        self.initialise_cells(state, cells, reading, mote)
        return [(cell.count, cell.value) for cell in state]

    def merge(self, a: State, b: State) -> list[Cell]:
        """Two states as one; the first cell's value is None where it needs more bits than there are."""
        into = cells_of(a)
        fits = self.merge_cells(into, cells_of(b), len(a))
        merged: list[Cell] = [(cell.count, cell.value) for cell in into]
        lost = a[0][1] is None or b[0][1] is None or not fits
        return [(merged[0][0], None), *merged[1:]] if lost else merged


def cells_of(state: State) -> Any:
    """A state as C has it."""
    return (CellOfC * len(state))(*[CellOfC(count, value or 0) for count, value in state])


@cache
def code_of(kind: Aggregate) -> AggregateCode:
    """One of the motes' own. Raises LibraryError, ValueError."""
    return AggregateCode.of(_library(), _NAMES_IN_C.get(kind, kind.name.lower()))


def check() -> None:
    """Raises LibraryError where aggregates cannot be merged here."""
    _library()


@cache
def _library() -> ctypes.CDLL:
    return load(_NAME)
