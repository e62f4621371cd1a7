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
from typing import Any

from skerry.catalog import actions
from skerry.expressions.aggregate_code import AggregateCode, Cell, CellOfC, State, cells_of
from skerry_protocol.codes import Aggregate
from skerry_protocol.extensions import Declared, ExtensionError

_EVALUATE = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.POINTER(CellOfC), ctypes.c_uint8, ctypes.POINTER(ctypes.c_int64)
)


@dataclass(frozen=True)
class ExtensionAggregate:
    """One of them. ``digits``: of its value, beyond its argument's."""

    name: str
    number: int
    cells: int
    digits: int
    description: str
    properties: tuple[str, ...]
    code: AggregateCode
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
        return self.code.initial(self.cells, reading, mote)

    def merge(self, a: State, b: State) -> list[Cell]:
        """Two states as one."""
        return self.code.merge(a, b)

    def evaluate(self, state: State) -> int | None:
        """What users see; None: NULL."""
        value = ctypes.c_int64()
        if state[0][1] is None or not self.evaluate_cells(cells_of(state), len(state), ctypes.byref(value)):
            return None
        return value.value


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
        code = AggregateCode.of(library, one.name)
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
        code,
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
