"""What panes hold, without the room that they leave: cells that have rows, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skerry.execution.partial_panes import EMPTY, cells_of
from skerry.execution.range_index import Int64
from skerry.expressions.evaluate import Mask
from skerry.expressions.expression import Expr

#: By expression: arrays of panes by groups; None: (rows,).
States = dict[Expr | None, list[npt.NDArray[np.int64]]]


@dataclass(frozen=True, slots=True)
class PanesState:
    """Of :class:`skerry.windows.panes.Panes`. ``now_ms``: the time; ``first``: number of the first pane held; ``room``: for so many panes
    and groups; ``groups``: how many there are; ``cells``: places of those with rows, and by expression what ``states`` has of each;
    ``motes``: by pane, those that have ``columns``, in their order."""

    now_ms: int | None
    first: int
    room: tuple[int, int]
    groups: int
    cells: Int64
    states: Mapping[Expr | None, Sequence[Int64]]
    motes: Mask
    columns: Sequence[int]

    def arrays(self) -> States:
        """With their room."""
        found: States = {}
        for argument, parts in self.states.items():
            found[argument] = []
            for part, empty in zip(parts, EMPTY[: cells_of(argument)], strict=False):
                array = np.full(self.room, empty, np.int64)
                array.reshape(-1)[self.cells] = part
                found[argument].append(array)
        return found


def cells_with_rows(states: States) -> tuple[Int64, dict[Expr | None, list[Int64]]]:
    """Their places, and what is there: an aggregate has something of no others."""
    counts = states[None]
    places = np.flatnonzero(counts[0]) if counts else np.empty(0, np.int64)
    return places, {a: [array.reshape(-1)[places] for array in arrays] for a, arrays in states.items()}
