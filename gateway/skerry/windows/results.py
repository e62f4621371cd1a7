"""Rows that windows give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skerry.execution.range_index import Int64
from skerry.expressions.expression import Expr
from skerry.planner.model.frames import Window

#: A row of windows: by which row of the log it came, when that was sampled, by the windows' time, and that in UTC; when the windows end,
#: of which group and which revision it is, and how many motes are in them.
GIVEN = np.dtype(
    [(name, "<i8") for name in ("row", "brought_ms", "brought_utc_ms", "end", "group", "revision", "motes")]
)


@dataclass(frozen=True, slots=True)
class Result:
    """``rows``: of :data:`GIVEN`. ``states``: by window and what is aggregated (None: rows), a line for each of them."""

    rows: np.ndarray
    states: Mapping[tuple[Window, Expr | None], Int64]

    @property
    def numbers(self) -> Int64:
        """By which rows of the log they came."""
        return self.rows["row"]

    @property
    def ends(self) -> Int64:
        """When the windows end."""
        return self.rows["end"]

    @property
    def groups(self) -> Int64:
        """Numbers of their groups."""
        return self.rows["group"]

    @property
    def revisions(self) -> Int64:
        """Which revision of the windows they are."""
        return self.rows["revision"]

    @property
    def motes(self) -> Int64:
        """How many motes are in the windows."""
        return self.rows["motes"]

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, places: Int64) -> Result:
        """Those in these places."""
        return Result(self.rows[places], {key: cells[places] for key, cells in self.states.items()})

    def ends_utc_ms(self, speed: float) -> Int64:
        """UTC of the windows' ends, by that of the rows that brought them; ``speed``: s of the windows' time in one of UTC's."""
        behind = self.rows["brought_ms"] - self.ends
        utc_ms: Int64 = self.rows["brought_utc_ms"] - np.rint(behind / speed).astype(np.int64)
        return utc_ms


def in_turn(parts: Sequence[Result]) -> Result:
    """Rows of the same windows, one part after the other; there is one at least."""
    if len(parts) == 1:
        return parts[0]
    states = {key: np.concatenate([part.states[key] for part in parts]) for key in parts[0].states}
    return Result(np.concatenate([part.rows for part in parts]), states)
