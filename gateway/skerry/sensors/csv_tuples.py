"""CSV files as COPY reads them: the first line names columns, each further one is a tuple."""

from __future__ import annotations

import csv
from pathlib import Path

from skerry.sensors import values
from skerry.sensors.definitions import SensorTable
from skerry.sensors.values import Kept, ValueRefusedError


def read_csv(path: Path, table: SensorTable, most: int) -> list[tuple[Kept, ...]]:
    """Its tuples, ``most`` at most. Raises OSError, ValueError, csv.Error."""
    if not path.is_file() and path.exists():
        # What waits for who writes to it would have everybody wait.
        raise ValueError("it is no file")
    with path.open(newline="", encoding="utf-8-sig") as opened:
        reader = csv.reader(opened)
        names = next(reader, None)
        if not names:
            raise ValueError("it is empty")
        places = []
        for name in names:
            place = table.place(name.strip())
            if place is None:
                raise ValueError(f"its first line names '{name}', which {table.name} does not have")
            if place in places:
                raise ValueError(f"its first line names '{name}' twice")
            places.append(place)
        rows = []
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(places):
                raise ValueError(
                    f"line {reader.line_num} has {counted(len(cells), 'value')} for {counted(len(places), 'column')}"
                )
            row: list[Kept] = [None] * len(table.columns)
            for place, cell in zip(places, cells, strict=True):
                try:
                    row[place] = values.read(table.columns[place], cell) if cell else None
                except ValueRefusedError as error:
                    raise ValueError(f"line {reader.line_num}: {error}") from None
            rows.append(tuple(row))
            if len(rows) > most:
                raise ValueError(f"it has more than {most} lines")
    return rows


def counted(number: int, what: str) -> str:
    """With the plural where it is one."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
