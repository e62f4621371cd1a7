"""Rows on standard output: one line each as they come, or a table of all."""

from __future__ import annotations

import csv
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from enum import StrEnum
from itertools import zip_longest
from shutil import get_terminal_size
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from skerry.sql.row_text import json_text, moment_text

Row = dict[str, Any]

#: Columns of a table are so far apart.
_GAP = 2
#: As wide as 2026-11-27 04:35:06.250+01:00.
_MOMENT = 29
#: No column is folded to less than this.
_FOLDED = 16


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def writer(
    format: Format, columns: list[dict[str, Any]], zone: tzinfo | None = None
) -> Callable[[Row], None]:
    """A function that writes one row; the heading is written now. Moments are in UTC, but in a table in ``zone``, None: this machine's."""
    names = [column["name"] for column in columns]
    if format is Format.JSON:
        return lambda row: print(json_text(row), flush=True)
    if format is Format.CSV:
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(names)
        sys.stdout.flush()

        def write_csv(row: Row) -> None:
            out.writerow([_csv_cell(row[name]) for name in names])
            sys.stdout.flush()

        return write_csv
    return _Table(columns, zone).write


class _Table:
    """Rows as they come, each column as wide as its widest cell so far: of lists and texts nobody knows how wide they will be. The
    heading is written again where that has changed. On a terminal that is too narrow for a row, lists are folded, an item below
    the other."""

    def __init__(self, columns: list[dict[str, Any]], zone: tzinfo | None) -> None:
        self._columns, self._zone = columns, zone
        self._headings = [f"{c['name']} ({c['unit']})" if c["unit"] else c["name"] for c in columns]
        self._widths = [
            max(cell_len(heading), _MOMENT if c["type"] == "timestamp" else 8)
            for heading, c in zip(self._headings, columns, strict=True)
        ]
        self._told = False
        # Of lists the first row tells how wide they are.
        if all(c["type"] != "list" for c in columns):
            self._head()

    def _head(self) -> None:
        self._told = True
        print(self._line(self._headings))
        print((" " * _GAP).join("-" * width for width in self._widths), flush=True)

    def _line(self, cells: Sequence[str]) -> str:
        padded = (
            " " * (width - cell_len(cell)) + cell for cell, width in zip(cells, self._widths, strict=True)
        )
        return (" " * _GAP).join(padded).rstrip()

    def write(self, row: Row) -> None:
        """One row."""
        cells = [_items(row[column["name"]], column["digits"], self._zone) for column in self._columns]
        lines = [", ".join(items) for items in cells]
        wide = sum(max(width, cell_len(line)) for width, line in zip(self._widths, lines, strict=True))
        room = get_terminal_size().columns if sys.stdout.isatty() else wide + _GAP * len(lines)
        if wide + _GAP * (len(lines) - 1) <= room:
            cells = [[line] for line in lines]
        widths = [
            max(width, *map(cell_len, items)) if items else width
            for items, width in zip(cells, self._widths, strict=True)
        ]
        if widths != self._widths or not self._told:
            self._widths = widths
            self._head()
        for items in zip_longest(*cells, fillvalue=""):
            print(self._line(items))
        sys.stdout.flush()


def _csv_cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return moment_text(value)
    # JSON, which other programs read.
    return json_text(value) if isinstance(value, (list, dict)) else value


def leave_output() -> None:
    """Nobody reads standard output any more: what Python would still flush at its end goes nowhere, and is no error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class _Console(Console):
    """One that tells of a closed standard output as ``print`` does."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - within the error's handler


def _items(value: Any, digits: int | None, zone: tzinfo | None) -> list[str]:
    """What a cell shows; of a list, each of its items."""
    return [_cell(item, digits, zone) for item in (value if isinstance(value, list) else [value])]


def _cell(value: Any, digits: int | None, zone: tzinfo | None = None) -> str:
    """``digits``: decimal places of numbers; None: as many as each needs."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.astimezone(zone).isoformat(" ", timespec="milliseconds")
    if isinstance(value, dict):
        return f"{_cell(value['value'], digits)} at {value['nodeid']}"
    return f"{value:.{digits}f}" if isinstance(value, float) and digits is not None else str(value)


def table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Print all rows, each whole: on a terminal that is too narrow the widest column is folded; where that does not help, and
    where there is no terminal, a row is one line, however long."""
    cells = [["" if row.get(name) is None else str(row[name]) for name in columns] for row in rows]
    lines = [list(columns), *cells]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    console = _Console(highlight=False, markup=False)
    widest = max(range(len(widths)), key=widths.__getitem__)
    room = console.width - sum(widths) - _GAP * (len(widths) - 1) + widths[widest]
    if console.is_terminal and _FOLDED <= room < widths[widest]:
        widths[widest] = room
        lines = [folded for line in lines for folded in _folded(line, widest, room)]
    for number, line in enumerate(lines):
        padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True))
        text = (" " * _GAP).join(padded).rstrip()
        console.print(text, style="bold" if number == 0 else None, soft_wrap=True)


def _folded(line: list[str], column: int, width: int) -> list[list[str]]:
    """The lines that one becomes with a column of this width."""
    parts = textwrap.wrap(line[column], width) or [""]
    return [
        [part if i == column else cell if number == 0 else "" for i, cell in enumerate(line)]
        for number, part in enumerate(parts)
    ]
