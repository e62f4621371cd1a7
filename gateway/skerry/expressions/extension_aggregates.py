"""Aggregates from outside this tree: a C file each, whose code runs here as it does on motes.

``make firmware EXTENSIONS=folder`` builds them into the images and, for the gateway, into
``build/firmware/extensions``: ``extensions.json`` says what there is, ``extensions.so`` has the code.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skerry.catalog import actions
from skerry_protocol.extensions import Declared, ExtensionError
from skerry_protocol.packets import Aggregate

if TYPE_CHECKING:
    from skerry.expressions.aggregate_states import Cell, State


class _Cell(ctypes.LittleEndianStructure):
    """struct wire_aggregate_state."""

    _pack_ = 1
    _fields_ = (("count", ctypes.c_uint16), ("value", ctypes.c_int32))


_INITIALISE = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Cell), ctypes.c_uint8, ctypes.c_int32, ctypes.c_uint16)
_MERGE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(_Cell), ctypes.POINTER(_Cell), ctypes.c_uint8)
_EVALUATE = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.POINTER(_Cell), ctypes.c_uint8, ctypes.POINTER(ctypes.c_int64)
)


class _Struct(ctypes.Structure):
    """struct aggregate."""

    _fields_ = (("cells", ctypes.c_uint8), ("initialise", _INITIALISE), ("merge", _MERGE))


@dataclass(frozen=True)
class ExtensionAggregate:
    """One of them. ``digits``: of its value, beyond its argument's."""

    name: str
    number: int
    cells: int
    digits: int
    description: str
    properties: tuple[str, ...]
    initialise_cells: Any
    merge_cells: Any
    evaluate_cells: Any
    folder: Path

    def over(self, readings: Iterable[tuple[int, ...]]) -> list[Cell]:
        """The state over readings: each with how often it was taken, and the mote that took it."""
        whole: list[Cell] = [(0, 0)] * self.cells
        for value, count, mote in readings:
            state = self.initial(value, mote)
            for power in range(count.bit_length()):
                if count >> power & 1:
                    whole = self.merge(whole, state)
                state = self.merge(state, state)
        return whole

    def initial(self, reading: int, mote: int) -> list[Cell]:
        """The state over one reading of a mote."""
        cells = _cells([(0, 0)] * self.cells)
        self.initialise_cells(cells, self.cells, reading, mote)
        return [(cell.count, cell.value) for cell in cells]

    def merge(self, a: State, b: State) -> list[Cell]:
        """Two states as one."""
        into = _cells(a)
        fits = self.merge_cells(into, _cells(b), len(a))
        lost = a[0][1] is None or b[0][1] is None or not fits
        merged: list[Cell] = [(cell.count, cell.value) for cell in into]
        return [(merged[0][0], None), *merged[1:]] if lost else merged

    def evaluate(self, state: State) -> int | None:
        """What users see; None: NULL."""
        value = ctypes.c_int64()
        if state[0][1] is None or not self.evaluate_cells(_cells(state), len(state), ctypes.byref(value)):
            return None
        return value.value


def _cells(state: State) -> Any:
    return (_Cell * len(state))(*[_Cell(count, value or 0) for count, value in state])


_BY_NAME: dict[str, ExtensionAggregate] = {}


def load(folder: Path, taken: Collection[str]) -> None:
    """Take in what a folder of built extensions has; ``taken``: functions there are, in upper case. Raises ExtensionError."""
    try:
        entries = json.loads((folder / "extensions.json").read_text())
        library = ctypes.CDLL(str(folder / "extensions.so"))
    except (OSError, ValueError) as error:
        hint = "build them with make firmware EXTENSIONS=folder"
        raise ExtensionError(f"{folder} holds no extensions that can be used: {error}; {hint}") from None
    declared = [Declared.from_dict(entry) for entry in entries]
    try:
        actions.extend(declared)
    except ValueError as error:
        raise ExtensionError(str(error)) from None
    for one in declared:
        if one.kind == "AGGREGATE":
            _take(one, library, folder.resolve(), taken)


def folders() -> list[Path]:
    """The folders that they are from, for a process that is to have the same."""
    return list(dict.fromkeys(one.folder for one in _BY_NAME.values()))


def _take(one: Declared, library: ctypes.CDLL, folder: Path, taken: Collection[str]) -> None:
    name = one.name.upper()
    if name in taken:
        raise ExtensionError(f"{one.path}: aggregate '{one.name}' exists already: give it another name")
    try:
        code = _Struct.in_dll(library, f"aggregate_{one.name}")
        evaluate = _EVALUATE((f"aggregate_{one.name}_evaluate", library))
    except (AttributeError, ValueError) as error:
        raise ExtensionError(f"{one.path}: {error}") from None
    _BY_NAME[name] = ExtensionAggregate(
        name,
        one.number,
        one.low,
        one.high,
        one.description,
        one.properties,
        code.initialise,
        code.merge,
        evaluate,
        folder,
    )


def names() -> list[str]:
    """All of them, in upper case."""
    return list(_BY_NAME)


def find(name: str) -> ExtensionAggregate | None:
    """By name in upper case."""
    return _BY_NAME.get(name)


def name_of(kind: Aggregate) -> str:
    """How the language calls an aggregate; one whose extension is not loaded goes by its number."""
    return next((name for name, one in _BY_NAME.items() if one.number == kind), kind.name)


def by_number(number: int) -> ExtensionAggregate:
    """The one that motes call so. Raises KeyError."""
    return next((one for one in _BY_NAME.values() if one.number == number), None) or _missing(number)


def _missing(number: int) -> ExtensionAggregate:
    raise KeyError(f"no aggregate {number}: start the gateway with --extensions")
