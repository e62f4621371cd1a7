"""Lines over a table's numbers, as the papers' figures have them."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.runner.result import Column, Result, number

_MARKERS = "osd^vx+"


def lines(result: Result, table: str, across: str, names: Sequence[str], label: str) -> Figure:
    """A line for each of these columns of a table over another one of its columns; rows that have no number there are left out."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    found = result.table(table)
    column = next(one for one in found.columns if one.name == across)
    for place, name in enumerate(names):
        pairs = zip(found.column(across), found.column(name), strict=True)
        points = [
            (x, y) for x, y in ((number(a), number(b)) for a, b in pairs) if x is not None and y is not None
        ]
        axes.plot(*zip(*points, strict=True), label=name, marker=_MARKERS[place % len(_MARKERS)])
    dress(axes, column, label)
    return figure


def dress(axes: Axes, across: Column | str, label: str, title: str = "", *, cut: bool = False) -> None:
    """What all charts have: names of both axes, a grid, a legend; they begin at zero unless they may be cut."""
    axes.set_xlabel(across if isinstance(across, str) else across.head)
    axes.set_ylabel(label)
    axes.set_title(title, fontsize="medium")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize="small")
    if not cut:
        axes.set_ylim(bottom=0)
