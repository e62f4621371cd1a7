"""What a run of a benchmark leaves: its figures and tables as numbers with units, and what is needed to measure them again.

A result is a JSON file, ``bench/results/<area>/<name>.json``; options that were not the usual ones are part of its name, so that a run
of another kind never replaces it. Pages, charts and comparisons are made from these files alone.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

#: Which way a figure is better; "": neither, or it has to stay what it is.
Better = Literal["more", "less", ""]


class Spread(msgspec.Struct, frozen=True):
    """A figure of several runs: the middle, the least and the most of them."""

    value: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The median of some runs, and their ends."""
        found = list(values)
        return cls(statistics.median(found), min(found), max(found))

    @classmethod
    def mean(cls, values: Iterable[float]) -> Spread:
        """The mean of some runs, and their ends."""
        found = list(values)
        return cls(statistics.fmean(found), min(found), max(found))


#: None: there is nothing to tell, or nothing was measured.
Cell = Spread | bool | int | float | str | None


def number(cell: Cell) -> float | None:
    """What of a cell can be compared."""
    if isinstance(cell, Spread):
        return cell.value
    return None if isinstance(cell, (bool, str)) or cell is None else float(cell)


def shown(cell: Cell, unit: str = "", form: str = "") -> str:
    """A cell as text. ``form``: Python's format of a number, such as ``,.1f``."""
    if cell is None:
        return "—"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Spread):
        if cell.least == cell.most:
            return shown(cell.value, unit, form)
        least, most = (shown(end, form=form) for end in (cell.least, cell.most))
        return f"{shown(cell.value, unit, form)} ({least} to {most})"
    text = format(cell, form or ("," if isinstance(cell, int) else ",.4g"))
    return f"{text}{'' if unit in ('', '×', '/s') else ' '}{unit}"


class Figure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure: what was measured, and what was to be reached."""

    what: str
    value: Cell
    unit: str = ""
    form: str = ""
    better: Better = ""
    #: In the figure's unit: at least or at most so much, by ``better``.
    goal: float | None = None
    #: What it is to be seen against, such as a paper's figure.
    reference: str = ""
    #: Whether it stands on the first page.
    main: bool = False

    @property
    def text(self) -> str:
        """The figure with its unit."""
        return shown(self.value, self.unit, self.form)

    @property
    def missed(self) -> bool:
        """Whether it falls short of its goal."""
        value = number(self.value)
        if value is None or self.goal is None:
            return False
        return value < self.goal if self.better == "more" else value > self.goal

    @property
    def goal_text(self) -> str:
        """What was to be reached."""
        if self.goal is None:
            return self.reference
        ends = {"more": "at least ", "less": "at most "}
        goal = int(self.goal) if float(self.goal).is_integer() else self.goal
        text = ends.get(self.better, "") + shown(goal, self.unit)
        return f"{text} ({self.reference})" if self.reference else text


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table's column; ``unit`` stands behind its name."""

    name: str
    unit: str = ""
    form: str = ""
    better: Better = ""

    @property
    def head(self) -> str:
        """Name and unit."""
        return f"{self.name}, {self.unit}" if self.unit and self.name else self.name or self.unit


class Table(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows of cells, each named by its first ``labels`` cells."""

    #: Stays what it is when titles change.
    name: str
    title: str = ""
    labels: int = 1
    columns: list[Column]
    rows: list[list[Cell]]

    def column(self, name: str) -> list[Cell]:
        """All cells of a column."""
        place = [column.name for column in self.columns].index(name)
        return [row[place] for row in self.rows]

    def key(self, row: Sequence[Cell]) -> str:
        """A row's name."""
        cells = zip(row[: self.labels], self.columns, strict=False)
        return ", ".join(shown(cell, form=column.form) for cell, column in cells)


class Machine(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a benchmark ran on."""

    cores: int
    memory_gib: float
    python: str
    processor: str = ""

    def __str__(self) -> str:
        size = f"{self.cores} cores, {self.memory_gib:.0f} GiB, Python {self.python}"
        return f"{size}, {self.processor}" if self.processor else size


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of one benchmark."""

    area: str
    name: str
    #: What measures it again.
    command: str
    #: All options, as they were; and those of them that were not the usual ones, by which the file is named.
    options: dict[str, Any]
    variant: str = ""
    quick: bool = False
    date: str
    commit: str
    #: Whether files differed from the commit.
    changed: bool = False
    seeds: list[int] = []
    machine: Machine
    #: How long it took.
    seconds: float | None = None
    #: What else ran meanwhile, and the like.
    note: str = ""
    #: "table": taken over from the printed table of that commit, with the digits that it had.
    source: Literal["run", "table"] = "run"
    figures: list[Figure] = []
    tables: list[Table] = []
    remarks: list[str] = []
    #: What had to hold and did not.
    problems: list[str] = []

    @property
    def key(self) -> str:
        """Its file's name without the ending, from the folder of all results."""
        return f"{self.area}/{self.name}" + (f".{self.variant}" if self.variant else "")

    def table(self, name: str) -> Table:
        """One of its tables."""
        found = [table for table in self.tables if table.name == name]
        if not found:
            raise KeyError(f"{self.key} has no table {name!r}: {', '.join(t.name for t in self.tables)}")
        return found[0]

    def path(self, folder: Path) -> Path:
        """Where it lies in a folder of results."""
        return folder / f"{self.key}.json"


class ResultError(ValueError):
    """A file is no result; the message says which and why."""


def read(path: Path) -> Result:
    """A result. Raises ResultError."""
    try:
        return decoded(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise ResultError(f"{path}: there is no such file") from None


def decoded(text: bytes, name: str) -> Result:
    """A result from what its file holds; ``name`` is the file's, for messages."""
    try:
        return msgspec.json.decode(text, type=Result)
    except msgspec.DecodeError as error:
        raise ResultError(f"{name}: not a result of a benchmark: {error}") from None


def stored(folder: Path) -> list[Result]:
    """All results below a folder in the order of their names, of each benchmark the usual one first."""
    found = [read(path) for path in folder.rglob("*.json")]
    return sorted(found, key=lambda result: (result.area, result.name, result.variant))


def write(result: Result, path: Path) -> None:
    """Store it, a line for each figure and each row of a table, six digits of each number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_lines(msgspec.to_builtins(result)), encoding="utf-8")


def _lines(fields: dict[str, Any]) -> str:
    parts = []
    for key, value in fields.items():
        if key == "tables":
            text = _list([_table(table) for table in value], 1)
        elif key in ("figures", "remarks", "problems"):
            text = _list([_flat(one) for one in value], 1)
        else:
            text = _flat(value)
        parts.append(f" {_flat(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _table(table: dict[str, Any]) -> str:
    lists = {"columns", "rows"}
    parts = [
        f"   {_flat(key)}: {_list([_flat(one) for one in value], 3) if key in lists else _flat(value)}"
        for key, value in table.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n  }"


def _list(items: list[str], depth: int) -> str:
    inner, outer = " " * (depth + 1), " " * depth
    return "[\n" + ",\n".join(inner + item for item in items) + f"\n{outer}]" if items else "[]"


def _flat(value: Any) -> str:
    return json.dumps(_rounded(value), ensure_ascii=False)


def _rounded(value: Any) -> Any:
    """Floats with as many digits as mean something."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value
