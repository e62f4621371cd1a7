"""Rows on standard output, one line each as they come."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Any

Row = dict[str, Any]


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def writer(format: Format, columns: list[dict[str, Any]]) -> Callable[[Row], None]:
    """A function that writes one row; the heading is written now."""
    names = [column["name"] for column in columns]
    if format is Format.JSON:
        return lambda row: print(json.dumps(row), flush=True)
    if format is Format.CSV:
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(names)
        sys.stdout.flush()

        def write_csv(row: Row) -> None:
            out.writerow(["" if row[name] is None else row[name] for name in names])
            sys.stdout.flush()

        return write_csv
    headings = [f"{c['name']} ({c['unit']})" if c["unit"] else c["name"] for c in columns]
    widths = [max(len(heading), 8) for heading in headings]
    print("  ".join(heading.rjust(width) for heading, width in zip(headings, widths, strict=True)))
    print("  ".join("-" * width for width in widths), flush=True)

    def write_table(row: Row) -> None:
        cells = [
            _cell(row[column["name"]], column["digits"]).rjust(width)
            for column, width in zip(columns, widths, strict=True)
        ]
        print("  ".join(cells), flush=True)

    return write_table


def leave_output() -> None:
    """Nobody reads standard output any more: what Python would still flush at its end goes nowhere, and is no error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, dict):
        return f"{_cell(value['value'], digits)} at {value['nodeid']}"
    if isinstance(value, list):
        return ", ".join(_cell(item, digits) for item in value)
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)
