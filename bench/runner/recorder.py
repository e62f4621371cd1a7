"""What a benchmark tells while it runs: figures and tables, which become its result, and progress on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO, TypeVar

from bench.runner.result import Better, Cell, Column, Figure, Table

#: Seconds between two lines of progress where they do not replace each other.
EVERY_S = 10.0

T = TypeVar("T")


class Rows:
    """A table that grows; rows that were measured are there when a run is interrupted."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def row(self, *cells: Cell) -> None:
        """One more."""
        if len(cells) != len(self.table.columns):
            raise ValueError(
                f"{self.table.name}: {len(self.table.columns)} columns, {len(cells)} cells: {cells}"
            )
        self.table.rows.append(list(cells))


class Recorder:
    """Figures, tables, remarks and problems of one run."""

    def __init__(self, *, progress: TextIO | None = sys.stderr) -> None:
        self.figures: list[Figure] = []
        self.tables: list[Table] = []
        self.remarks: list[str] = []
        self.problems: list[str] = []
        #: Whether the run ended before its time, with what it had.
        self.cut_short = False
        self._progress = progress
        self._began = self._last = time.monotonic()
        self._shown = 0

    def figure(
        self, what: str, value: Cell, unit: str = "", form: str = "", *, better: Better = "", goal: float | None = None,
        reference: str = "", main: bool = False,
    ) -> None:  # fmt: skip
        """One figure; see :class:`bench.runner.result.Figure`."""
        self.figures.append(
            Figure(
                what=what, value=value, unit=unit, form=form, better=better, goal=goal, reference=reference, main=main
            )
        )  # fmt: skip

    def table(self, name: str, columns: Sequence[Column], *, title: str = "", labels: int = 1) -> Rows:
        """A table to which rows are added; see :class:`bench.runner.result.Table`."""
        table = Table(name=name, title=title, labels=labels, columns=list(columns), rows=[])
        self.tables.append(table)
        return Rows(table)

    def remark(self, text: str) -> None:
        """Something that belongs below the tables."""
        self.remarks.append(text)

    def problem(self, text: str) -> None:
        """Something that had to hold and did not: the run goes on, and fails."""
        self.problems.append(text)

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def progress(self, text: str) -> None:
        """Tell what is measured now: on a terminal in one line, elsewhere a line each ten seconds at most."""
        if self._progress is None:
            return
        line = f"{self.seconds:5.0f} s  {text}"
        if self._progress.isatty():
            self._progress.write(f"\r{line[:110]:{self._shown}}")
            self._shown = min(len(line), 110)
        elif time.monotonic() - self._last >= EVERY_S:
            self._last = time.monotonic()
            self._progress.write(f"{line}\n")
        self._progress.flush()

    def steps(self, items: Iterable[T], text: str = "", total: int | None = None) -> Iterator[T]:
        """Pass on the items, and tell how many are done and about how long the others take. ``total`` is needed where ``items``
        does not know how many there are."""
        total = total if total is not None else len(items) if isinstance(items, Sequence) else None
        began = time.monotonic()
        for done, item in enumerate(items):
            of = f" of {total}" if total else ""
            name = text or (item if isinstance(item, str) else "")
            left = (time.monotonic() - began) / done * (total - done) if total and done else None
            rest = f", some {left:.0f} s to go" if left is not None else ""
            self.progress(f"{name}{': ' if name else ''}{done + 1}{of}{rest}")
            yield item

    def done(self) -> None:
        """End the line of progress."""
        if self._progress is not None and self._shown:
            self._progress.write("\r" + " " * self._shown + "\r")
            self._progress.flush()
            self._shown = 0
