"""Two results of a benchmark beside each other, such as before a change and after it."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.runner.markdown import markdown
from bench.runner.provenance import PROJECT
from bench.runner.result import (
    Better,
    Cell,
    Column,
    Result,
    ResultError,
    Spread,
    decoded,
    number,
    read,
    shown,
)

#: Changes of less are not called better or worse, unless another bound is given; in per cent.
WITHIN = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of ``bench compare``."""
    parser.add_argument(
        "before", metavar="A", help="a result or a folder of them; COMMIT:PATH for what git has of it"
    )
    parser.add_argument("after", metavar="B", help="the other one")
    parser.add_argument(
        "--within", type=float, default=WITHIN, metavar="PERCENT",
        help=f"changes up to this are noise, as are those inside a figure's spread ({WITHIN:g})",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="what stays as it was, too")
    parser.add_argument("--fail", action="store_true", help="exit status 1 when something became worse")


@dataclass(frozen=True)
class Change:
    """One figure, or one cell of a table, in both results; None: it is in one alone."""

    what: str
    before: Cell
    after: Cell
    unit: str
    form: str
    better: Better

    @property
    def share(self) -> float | None:
        """By what part of the former the latter differs; None where that cannot be told."""
        before, after = number(self.before), number(self.after)
        if before is None or after is None:
            return None
        if before == after:
            return 0.0
        return (after - before) / abs(before) if before else None

    @property
    def inside(self) -> bool:
        """Whether one lies within the other's spread."""
        pairs = ((self.before, self.after), (self.after, self.before))
        return any(
            isinstance(one, Spread)
            and (value := number(other)) is not None
            and one.least <= value <= one.most
            for one, other in pairs
        )

    def verdict(self, within: float) -> str:
        """``better``, ``worse``, ``changed``, ``gone``, ``new``, or nothing."""
        if self.before == self.after:
            return ""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        before, after = number(self.before), number(self.after)
        if before is None or after is None:
            return "changed"
        if self.inside or (self.share is not None and abs(self.share) <= within / 100):
            return ""
        if not self.better:
            return "changed"
        return "better" if (after > before) == (self.better == "more") else "worse"


def changes(before: Result, after: Result) -> Iterator[Change]:
    """All figures and cells that both have, by name, and those that one has alone."""
    old, new = ({figure.what: figure for figure in one.figures} for one in (before, after))
    for what in [*new, *(what for what in old if what not in new)]:
        figure, former = new.get(what), old.get(what)
        known = figure or former
        assert known is not None
        yield Change(
            what, former.value if former else None, figure.value if figure else None, known.unit, known.form, known.better
        )  # fmt: skip
    tables = [table.name for table in after.tables]
    for name in [*tables, *(table.name for table in before.tables if table.name not in tables)]:
        cells = [dict(_cells(one, name)) for one in (before, after)]
        for key in [*cells[1], *(key for key in cells[0] if key not in cells[1])]:
            was, now = (one.get(key) for one in cells)
            column = (now or was or cells[1][key])[1]
            yield Change(
                key, was[0] if was else None, now[0] if now else None, column.unit, column.form, column.better
            )


def _cells(result: Result, name: str) -> Iterator[tuple[str, tuple[Cell, Column]]]:
    for table in result.tables:
        if table.name == name:
            for row in table.rows:
                for cell, column in list(zip(row, table.columns, strict=True))[table.labels :]:
                    yield f"{table.key(row)}: {column.name or column.unit}", (cell, column)


def compare(found: argparse.Namespace) -> int:
    """Print it; 1 when something became worse and ``--fail`` asks for that. Raises ResultError."""
    pairs = list(_pairs(found.before, found.after))
    worse = 0
    for before, after in pairs:
        if (before.area, before.name) != (after.area, after.name):
            raise ResultError(f"these cannot be compared: {before.key} and {after.key} are two benchmarks")
        worse += _print(before, after, found.within, show_all=found.all)
    if len(pairs) > 1:
        print(f"\n{len(pairs)} results compared; figures that became worse: {worse}")
    return 1 if worse and found.fail else 0


def _print(before: Result, after: Result, within: float, *, show_all: bool) -> int:
    print(f"\n## {after.area} {after.name}\n")
    for name, result in (("A", before), ("B", after)):
        changed = " and changes" if result.changed else ""
        note = f", {result.note}" if result.note else ""
        print(f"- {name}: commit {result.commit}{changed}, {result.date}, {result.machine}{note}")
    for what, one, other in _conditions(before, after):
        print(f"- not alike: {what} {one} and {other}")
    found = list(changes(before, after))
    rows, worse, alike = [], 0, 0
    for change in found:
        verdict = change.verdict(within)
        worse += verdict == "worse"
        alike += not verdict
        if verdict or show_all:
            share = "" if change.share is None else f"{100 * change.share:+.1f} %"
            cells = (shown(cell, change.unit, change.form) for cell in (change.before, change.after))
            rows.append([change.what, *cells, share, verdict])
    print()
    if rows:
        print(markdown(["what", "A", "B", "change", ""], rows))
    if not show_all and alike:
        every = "all" if alike == len(found) else f"{alike} of"
        print(f"\n{every} {len(found)} figures: within {within:g} % or the spread of their runs")
    return worse


def _conditions(before: Result, after: Result) -> Iterator[tuple[str, object, object]]:
    """What else differed than the program."""
    for key in [*after.options, *(key for key in before.options if key not in after.options)]:
        one, other = before.options.get(key), after.options.get(key)
        if one != other:
            yield f"--{key.replace('_', '-')}", one, other
    if before.quick != after.quick:
        yield "--quick", before.quick, after.quick
    if before.machine != after.machine:
        yield "machine:", before.machine, after.machine


def _pairs(before: str, after: str) -> Iterator[tuple[Result, Result]]:
    folders = [Path(name) for name in (before, after)]
    if not any(folder.is_dir() for folder in folders):
        yield _read(before), _read(after)
        return
    for folder in folders:
        if not folder.is_dir():
            raise ResultError(f"{folder} is no folder of results, as the other is")
    names = [{path.relative_to(folder) for path in folder.rglob("*.json")} for folder in folders]
    for name in sorted(names[0] ^ names[1]):
        only = folders[0] if name in names[0] else folders[1]
        print(f"{name}: in {only} alone", file=sys.stderr)
    for name in sorted(names[0] & names[1]):
        yield read(folders[0] / name), read(folders[1] / name)


def _read(name: str) -> Result:
    """A file, or what a commit has of it, such as ``HEAD~3:bench/results/query/pushdown.json``."""
    if ":" not in name or Path(name).exists():
        return read(Path(name))
    done = subprocess.run(["git", "show", name], cwd=PROJECT, capture_output=True, check=False)
    if done.returncode:
        raise ResultError(f"{name}: {done.stderr.decode(errors='replace').strip()}")
    return decoded(done.stdout, name)
