"""Partial states made at the gateway: of rows from all motes, and of states that motes computed for several conditions in one program.

An epoch of rows is complete when all motes have sent theirs that did so lately, and over some time behind its samples, complete or not; its
states are made then, as those that motes would have merged on the way. A row that comes later makes a state of its own. Until then nothing
is told of what is made of it, nor of what is behind that (:meth:`RowEpochs.held`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from skerry.expressions.aggregate_code import Cell
from skerry.expressions.aggregate_states import initial, merge_cells
from skerry.expressions.evaluate import Evaluator, Mask, Vector
from skerry.expressions.evaluate import Values as Integers
from skerry.expressions.expression import Expr
from skerry.ingest.partial_states import Partial
from skerry.ingest.pulses import NODEID
from skerry.planner.model.columns import Projection
from skerry.planner.model.plans import MoteQuery
from skerry.streams.stream import Stream
from skerry_protocol.codes import Aggregate
from skerry_protocol.limits import NO_GROUP

#: So long behind its samples, ms, an epoch is over, at most.
OVER_MS = 5_000
#: A mote is expected to send a row if it sent one in so many epochs before.
_LATELY = 3
#: Epochs of a stream of which is remembered that they were told.
_EPOCHS = 256
_SUMMED = (Aggregate.SUM, Aggregate.AVG)
_SIMPLE = (*_SUMMED, Aggregate.COUNT, Aggregate.MIN, Aggregate.MAX)

#: Values of a row by the columns of its mote query; None: NULL.
Values = tuple[int | None, ...]


@dataclass(slots=True)
class _Epoch:
    rows: dict[int, Values] = field(default_factory=dict)
    told: bool = False


@dataclass(slots=True)
class _Waiting:
    """Epochs of a stream; those up to ``floor`` are over, and nothing is remembered of them."""

    epochs: dict[int, _Epoch] = field(default_factory=dict)
    floor: int = -1

    def at(self, epoch: int) -> _Epoch:
        found = self.epochs.get(epoch)
        if found is None:
            found = self.epochs[epoch] = _Epoch(told=epoch <= self.floor)
        return found


@dataclass(slots=True)
class _Senders:
    """Of a session: when each mote's last sample was taken, and the first of all, ms."""

    last_ms: dict[int, int] = field(default_factory=dict)
    first_ms: int | None = None


class RowEpochs:
    """The rows of streams to which all motes send one in each epoch, until they are told. ``undo`` takes back what a batch of them has
    changed."""

    def __init__(self, undo: list[Callable[[], object]]) -> None:
        self._undo = undo
        self._streams: dict[int, _Waiting] = {}
        self._sessions: dict[int, _Senders] = {}

    def take(self, stream: Stream, epoch: int, node: int, row: Values) -> None:
        """A mote's row of an epoch."""
        found = self._streams.setdefault(stream.number, _Waiting()).at(epoch)
        if node not in found.rows:
            found.rows[node] = row
            self._undo.append(lambda: found.rows.pop(node, None))
        sample_ms, senders = (
            epoch * stream.mote_query.period_ms,
            self._sessions.setdefault(stream.session, _Senders()),
        )
        senders.last_ms[node] = max(senders.last_ms.get(node, sample_ms), sample_ms)
        senders.first_ms = sample_ms if senders.first_ms is None else min(senders.first_ms, sample_ms)

    def was_told(self, stream: Stream, epoch: int) -> None:
        """An epoch was told before this gateway started, with the rows that had come by then."""
        waiting = self._streams.setdefault(stream.number, _Waiting())
        waiting.epochs[epoch] = _Epoch(told=True)

    def complete(self, stream: Stream) -> list[tuple[int, dict[int, Values]]]:
        """Epochs of which all rows are there that are to come, oldest first, with the rows; those before them are over."""
        waiting = self._streams.get(stream.number)
        if waiting is None:
            return []
        open_ = sorted(epoch for epoch, found in waiting.epochs.items() if not found.told)
        whole = max((epoch for epoch in open_ if self._is_whole(stream, waiting, epoch)), default=None)
        return [self._tell(waiting, epoch) for epoch in open_ if whole is not None and epoch <= whole]

    def over(
        self, stream: Stream, now_ms: int, after_ms: int = OVER_MS
    ) -> list[tuple[int, dict[int, Values]]]:
        """Epochs whose time is over, ``after_ms`` behind their samples, and rows that came behind that. ``now_ms``: network time."""
        waiting = self._streams.get(stream.number)
        if waiting is None:
            return []
        behind = (now_ms - after_ms) // stream.mote_query.period_ms
        due = sorted(e for e, found in waiting.epochs.items() if found.rows and (found.told or e <= behind))
        told = [self._tell(waiting, epoch) for epoch in due]
        old = sorted(epoch for epoch, found in waiting.epochs.items() if found.told)[:-_EPOCHS]
        for epoch in old:
            del waiting.epochs[epoch]
            waiting.floor = max(waiting.floor, epoch)
        return told

    def held(self, stream: Stream) -> list[int]:
        """Epochs with rows that no state has been made of."""
        waiting = self._streams.get(stream.number)
        return [] if waiting is None else [epoch for epoch, found in waiting.epochs.items() if found.rows]

    def forget(self, stream: int) -> None:
        """Nothing is made of a stream any more."""
        self._streams.pop(stream, None)

    def _is_whole(self, stream: Stream, waiting: _Waiting, epoch: int) -> bool:
        period_ms, senders = stream.mote_query.period_ms, self._sessions[stream.session]
        if senders.first_ms is None or senders.first_ms >= epoch * period_ms:
            # Nobody knows yet who is to send something.
            return False
        lately = (epoch - _LATELY) * period_ms
        rows = waiting.epochs[epoch].rows
        return all(node in rows for node, last_ms in senders.last_ms.items() if last_ms >= lately)

    def _tell(self, waiting: _Waiting, epoch: int) -> tuple[int, dict[int, Values]]:
        found = waiting.epochs[epoch]
        rows, told = found.rows, found.told

        def undone() -> None:
            found.rows, found.told = rows | found.rows, told

        self._undo.append(undone)
        found.rows, found.told = {}, True
        return epoch, rows


def epoch_of(view: MoteQuery, source: MoteQuery, epoch: int) -> int | None:
    """The epoch of a view that an epoch of the mote query that it is made of is the first in; None: another one was before it."""
    sample_ms = epoch * source.period_ms
    found = sample_ms // view.period_ms
    return found if found != (sample_ms - source.period_ms) // view.period_ms else None


def states_of(view: MoteQuery, source: MoteQuery, epoch: int, rows: Mapping[int, Values]) -> list[Partial]:
    """The partial states that the motes' rows of an epoch come to, as if they had computed ``view``: one, or one of each group that has a
    row, and one of no group of the motes whose rows do not pass. ``source``: whose rows they are, ``epoch``: of the view's."""
    nodes = list(rows)
    evaluate = Evaluator(_columns(source, nodes, rows), np.full(len(nodes), epoch * view.period_ms, np.int64))
    passing = evaluate.truth(view.where, view.period_ms)
    groups = [c.expr for c in view.columns if c.aggregate is Aggregate.GROUP and c.expr is not None]
    if not groups:
        return [Partial(epoch, len(nodes), _states(view, evaluate, passing, nodes))]
    keys = [evaluate(expr, view.period_ms) for expr in groups]
    found: dict[tuple[int | None, ...], Mask] = {}
    for place in np.flatnonzero(passing).tolist():
        key = tuple(int(values[place]) if known[place] else None for values, known in keys)
        found.setdefault(key, np.zeros(len(nodes), np.bool_))[place] = True
    states = [
        Partial(epoch, int(mine.sum()), _states(view, evaluate, mine, nodes)) for mine in found.values()
    ]
    refused = len(nodes) - int(passing.sum())
    nothing = _states(view, evaluate, np.zeros(len(nodes), np.bool_), nodes)
    return [*states, Partial(epoch, refused, _of_no_group(view, nothing))] if refused else states


def _of_no_group(view: MoteQuery, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells of a state over no row, as one of no group."""
    pairs = zip(view.columns, cells, strict=True)
    return tuple((0, NO_GROUP) if column.aggregate is Aggregate.GROUP else cell for column, cell in pairs)


def _columns(source: MoteQuery, nodes: Sequence[int], rows: Mapping[int, Values]) -> dict[Expr, Vector]:
    columns: dict[Expr, Vector] = {NODEID: (np.array(nodes, np.int64), np.ones(len(nodes), np.bool_))}
    for place, column in enumerate(source.columns):
        if column.expr is not None:
            values = [rows[node][place] for node in nodes]
            known = np.array([value is not None for value in values], np.bool_)
            columns[column.expr] = np.array([value or 0 for value in values], np.int64), known
    return columns


def _states(view: MoteQuery, evaluate: Evaluator, mine: Mask, nodes: Sequence[int]) -> tuple[Cell, ...]:
    """The cells of all columns over some of the rows."""
    cells: list[Cell] = []
    for column in view.columns:
        if not column.is_field:
            continue
        if column.expr is None:
            cells.append((int(mine.sum()), 0))
            continue
        values, known = evaluate(column.expr, view.period_ms)
        there = mine & known
        if column.aggregate is Aggregate.GROUP:
            # All are alike.
            cells.append((int(there.sum()), int(values[there][0]) if there.any() else 0))
            continue
        if column.aggregate in _SIMPLE:
            cells.append(_simple(column.aggregate, values[there]))
            continue
        places = np.flatnonzero(there).tolist()
        state: list[Cell] = [(0, 0)] * column.cells
        for place in places:
            one = initial(column.aggregate, column.cells, int(values[place]), nodes[place])
            state = one if place == places[0] else merge_cells(column.aggregate, state, one)
        cells += state
    return tuple(cells)


def _simple(kind: Aggregate, readings: Integers) -> Cell:
    """The state of one cell over readings."""
    count = len(readings)
    if kind is Aggregate.COUNT or not count:
        return count, 0
    if kind in _SUMMED:
        total = int(readings.sum())
        return count, total
    return count, int(readings.min() if kind is Aggregate.MIN else readings.max())


def projected(view: MoteQuery, places: Projection, epoch: int, state: Partial) -> Partial:
    """A state of a mote query that computes a view's among others, as the view's own: one of no group where no row of its is in it."""
    cells = tuple(
        (state.states[place][0], 0 if column.aggregate is Aggregate.COUNT else state.states[place][1])
        for column, place in zip(view.columns, places.places, strict=True)
    )
    if places.counts is not None and state.states[places.counts][0] == 0:
        cells = _of_no_group(view, cells)
    return Partial(epoch, state.motes, cells)
