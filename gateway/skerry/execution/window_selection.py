"""Which rows of which streams go into panes of windows, and what of them is folded: an entry of the users' index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skerry.execution.matching import Part, View
from skerry.execution.partial_panes import PartialPanes, fold
from skerry.execution.window_rows import Group, Input, Piece, as_input, with_epochs
from skerry.expressions.expression import Expr, from_list
from skerry.streams.stream import common_ms


@dataclass(frozen=True, slots=True, eq=False)
class WindowSelection:
    """``views``: by stream, which of its rows; ``groups`` and ``arguments``: what they are grouped by and what is aggregated, for users
    with this period; ``epochs``: so many are told apart where they are grouped by those; ``speed``: windows go by UTC, and how that goes;
    None: by network time. ``width_ms``, ``grace_ms``: of the panes."""

    views: Mapping[int, View]
    groups: Sequence[Expr]
    arguments: Sequence[Expr]
    period_ms: int
    epochs: int
    speed: float | None
    width_ms: int
    grace_ms: int

    def is_over(self, streams: Iterable[int]) -> bool:
        """Whether any of these streams is among its own."""
        return not self.views.keys().isdisjoint(streams)

    def input(self, parts: Mapping[int, Part], known: dict[Group, int]) -> Input:
        """Rows of these streams, of which some are its own; new groups are added to ``known``."""
        pieces = [self._piece(view, parts[number]) for number, view in self.views.items() if number in parts]
        return as_input(pieces, known, len(self.groups), self.arguments)

    def fold(self, parts: Mapping[int, Part]) -> PartialPanes:
        """Rows of these streams, of which some are its own, without knowing what was before them."""
        known: dict[Group, int] = {} if self.groups else {(): 0}
        rows = self.input(parts, known)
        return replace(fold(rows, self.arguments, self.width_ms, self.grace_ms), groups=tuple(known))

    def _piece(self, view: View, part: Part) -> Piece:
        places = part.places(view)
        rows = part.rows.evaluate
        of_places = rows if len(places) == len(part.numbers) else rows.at(places)
        vectors = [of_places(expr, self.period_ms) for expr in (*self.groups, *self.arguments)]
        samples = part.rows.sample_ms if self.speed is None else common_ms(part.rows.utc_ms, self.speed)
        left = samples[places] // self.period_ms % max(1, self.epochs)
        vectors = with_epochs(vectors, self.groups, left)
        motes, _ = part.rows.column("nodeid")
        return Piece(part.numbers, samples, part.rows.utc_ms, places.astype(np.int64), vectors, motes[places])

    def to_text(self) -> str:
        """As JSON."""
        views = [[number, view.to_list()] for number, view in self.views.items()]
        exprs = [[expr.to_list() for expr in some] for some in (self.groups, self.arguments)]
        times = [self.period_ms, self.epochs, self.speed, self.width_ms, self.grace_ms]
        return json.dumps([views, *exprs, times])

    @classmethod
    def from_text(cls, text: str) -> WindowSelection:
        """What :meth:`to_text` wrote."""
        views, *exprs, times = json.loads(text)
        groups, arguments = ([from_list(expr) for expr in some] for some in exprs)
        of_streams: dict[int, Any] = {number: View.from_list(view) for number, view in views}
        return cls(of_streams, groups, arguments, *times)
