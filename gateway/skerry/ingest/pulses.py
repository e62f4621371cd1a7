"""Pulses from samples, and counts of pulses from either, as motes would have sent them (:mod:`skerry.sharing.shared_pulses`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from skerry.expressions import build
from skerry.expressions.evaluate import Evaluator, Vector
from skerry.expressions.expression import Expr
from skerry.expressions.temporal import is_pulse, pulse_of, pulses_window
from skerry.planner.model.plans import MoteQuery
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import Aggregate

#: Rows of a mote may be so long under way, ms: then a window of counts is complete without a later row.
UNDER_WAY_MS = 12_000

NODEID = build.attribute(BY_NAME["nodeid"])
#: Epoch and values of a row.
Row = tuple[int, tuple[int | None, ...]]


@dataclass
class _Mote:
    """``lengths``: of the pulses that have begun; ``counts``: of those that ended in the window before epoch ``end``."""

    last: int = -1
    end: int | None = None
    lengths: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


class Derivation:
    """The rows of ``view`` from those of ``program``, mote by mote in the order of epochs. Epochs that never come are taken to be
    like the one after them."""

    def __init__(self, program: MoteQuery, view: MoteQuery) -> None:
        self.program, self.view = program, view
        nodes = [column.expr for column in view.columns if column.expr is not None]
        self._conditions = [node.args[0] for node in nodes]
        counted = bool(nodes) and nodes[0].aggregate is Aggregate.PULSES
        self._window = pulses_window(nodes[0]) if counted else None
        sent: list[Expr | None] = [column.expr for column in program.columns]
        self._sampled = not any(expr is not None and is_pulse(expr) for expr in sent)
        self._places = [] if self._sampled else [sent.index(pulse_of(node)) for node in nodes]
        self._motes: dict[int, _Mote] = {}

    def take(self, node: int, epoch: int, rows: Sequence[Sequence[int | None]]) -> list[Row]:
        """Rows of a mote, of consecutive epochs from this one on. Those that are known already are passed over."""
        mote = self._motes.get(node)
        if mote is None:
            blank = [0] * len(self._conditions)
            mote = self._motes[node] = _Mote(lengths=blank, counts=list(blank))
        true = self._truth(node, epoch, rows) if self._sampled else []
        found: list[Row] = []
        for i, row in enumerate(rows):
            now = epoch + i
            if now <= mote.last:
                continue
            if self._sampled:
                ended = [self._ended(mote, k, now, bool(on[i])) for k, on in enumerate(true)]
            else:
                ended = [row[place] for place in self._places]
            mote.last = now
            found += self._told(mote, now, ended)
        return found

    def complete(self, now_ms: int) -> list[tuple[int, Row]]:
        """Motes and their rows of windows that nothing can be added to any more. ``now_ms``: network time."""
        found = []
        for node, mote in self._motes.items():
            if mote.end is not None and mote.end * self.view.period_ms + UNDER_WAY_MS <= now_ms:
                found += [(node, row) for row in self._close(mote)]
        return found

    def kept(self) -> Callable[[], None]:
        """Makes it as it is now, as if nothing had come since."""
        motes = deepcopy(self._motes)

        def restore() -> None:
            self._motes = motes

        return restore

    def _truth(self, node: int, epoch: int, rows: Sequence[Sequence[int | None]]) -> list[np.ndarray]:
        everywhere = np.ones(len(rows), np.bool_)
        columns: dict[Expr, Vector] = {NODEID: (np.full(len(rows), node, np.int64), everywhere)}
        for place, column in enumerate(self.program.columns):
            if column.expr is not None:
                values = [row[place] for row in rows]
                known = np.array([value is not None for value in values])
                columns[column.expr] = np.array([value or 0 for value in values], np.int64), known
        period = self.program.period_ms
        evaluate = Evaluator(columns, np.arange(epoch, epoch + len(rows), dtype=np.int64) * period)
        return [evaluate.truth(condition, period) for condition in self._conditions]

    @staticmethod
    def _ended(mote: _Mote, which: int, epoch: int, on: bool) -> int | None:
        """Length of the pulse that ended in this epoch; None: none did."""
        length = mote.lengths[which]
        missed = epoch - mote.last - 1 if mote.last >= 0 else 0
        if on:
            mote.lengths[which] = length + 1 + (missed if length else 0)
            return None
        mote.lengths[which] = 0
        return length or None

    def _told(self, mote: _Mote, epoch: int, ended: list[int | None]) -> list[Row]:
        any_ended = any(length is not None for length in ended)
        if self._window is None:
            return [(epoch, tuple(ended))] if any_ended else []
        found = self._close(mote) if mote.end is not None and epoch >= mote.end else []
        if any_ended:
            mote.end = epoch - epoch % self._window + self._window
            mote.counts = [n + (length is not None) for n, length in zip(mote.counts, ended, strict=True)]
        return found

    def _close(self, mote: _Mote) -> list[Row]:
        assert mote.end is not None
        row = (mote.end - 1, tuple(mote.counts))
        mote.end, mote.counts = None, [0] * len(self._conditions)
        return [row]
