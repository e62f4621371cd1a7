"""Windows over each mote's own rows, made at the gateway of rows that motes send for others too: the rows that a mote would have sent.

The arithmetic is the motes' (``firmware/query/operators/temporal.c`` and ``row.c``). An epoch whose row is lost on the way is to
the windows as one that the mote missed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from skerry.expressions import build
from skerry.expressions.build import INT32_MAXIMUM
from skerry.expressions.evaluate import Evaluator, Vector
from skerry.expressions.expression import Expr
from skerry.expressions.temporal import counts_epochs, is_pulse, is_temporal, parameters
from skerry.ingest.pulses import NODEID, Row
from skerry.planner.model.plans import Column, MoteQuery
from skerry_protocol.codes import Aggregate

#: EXPAVG computes with so many binary places; ADPDELTA's threshold grows to so many times the one that was asked for.
_EXPAVG_PLACES, _ADAPTED_MAXIMUM = 16, 64


@dataclass
class _Window:
    """The newest readings, None for NULL. ``since``: rows, or epochs, since one was due. Of one that counts epochs: the ``newest``, how
    many of the newest did not pass (``idle``), and one that came behind an epoch that was missed and in which a row was due:
    whether it passed, and its reading."""

    ring: list[int | None] = field(default_factory=list)
    since: int = 0
    newest: int = 0
    idle: int = 0
    late: tuple[bool, int | None] | None = None


@dataclass
class _Average:
    value: int | None = None


@dataclass
class _Delta:
    """``factor``: of ADPDELTA's threshold."""

    reported: int | None = None
    now: int | None = None
    factor: int = 0


@dataclass
class _Pulse:
    """Epochs for which a condition has been true; of the pulse that ended in this epoch, its length, 0: none did. PULSES: how many ended
    in the window before epoch ``end``."""

    on: int = 0
    value: int = 0
    end: int = 0


_State = _Window | _Average | _Delta | _Pulse


@dataclass
class _Mote:
    states: list[_State]
    last: int = -1


class MoteWindows:
    """What ``view`` asks motes for, of rows that are taken one mote after the other, each in the order of epochs."""

    def __init__(self, view: MoteQuery) -> None:
        self.view = view
        self._windows = [
            (column, column.expr)
            for column in view.columns
            if column.expr is not None and is_temporal(column.expr)
        ]
        self._motes: dict[int, _Mote] = {}

    def take(self, program: MoteQuery, node: int, epoch: int, row: Sequence[int | None]) -> list[Row]:
        """The row of a mote, of an epoch of the view's, by the columns of a mote query of any period; what it brings. One that is not
        newer than the last brings nothing."""
        mote = self._motes.get(node)
        if mote is None:
            mote = self._motes[node] = _Mote([_begun(expr) for _, expr in self._windows])
        if epoch <= mote.last:
            return []
        mote.last = epoch
        read = self._read(program, node, epoch, row)
        passes = bool(read.truth(self.view.where, self.view.period_ms)[0])
        if not passes and not any(counts_epochs(expr) for _, expr in self._windows):
            return []
        if not self._is_due(mote, epoch, read, passes):
            return []
        states = dict(zip((column.name for column, _ in self._windows), mote.states, strict=True))
        values = [self._value(column, read, states) for column in self.view.columns]
        return [(epoch, tuple(values))]

    def kept(self) -> Callable[[], None]:
        """Makes it as it is now, as if nothing had come since."""
        motes = deepcopy(self._motes)

        def restore() -> None:
            self._motes = motes

        return restore

    def _read(self, program: MoteQuery, node: int, epoch: int, row: Sequence[int | None]) -> Evaluator:
        columns: dict[Expr, Vector] = {NODEID: _vector(node)}
        for column, value in zip(program.columns, row, strict=True):
            if column.expr is not None:
                columns[column.expr] = _vector(value)
        return Evaluator(columns, np.array([epoch * self.view.period_ms], np.int64))

    def _is_due(self, mote: _Mote, epoch: int, read: Evaluator, passes: bool) -> bool:
        due, empty, ended = True, True, False
        for (_, expr), state in zip(self._windows, mote.states, strict=True):
            if not passes and not counts_epochs(expr):
                continue
            values, known = read(expr.args[0], self.view.period_ms)
            reading = int(values[0]) if passes and bool(known[0]) else None
            if isinstance(state, _Pulse):
                ended = _take_pulse(expr, state, epoch, on=bool(reading)) or ended
                continue
            due = _take(expr, state, epoch, passes, reading) and due
            if isinstance(state, _Window) and counts_epochs(expr):
                empty = empty and state.idle >= len(state.ring)
        pulses = any(is_pulse(expr) for _, expr in self._windows)
        counts = any(counts_epochs(expr) for _, expr in self._windows)
        return due and (ended or not pulses) and not (counts and empty)

    def _value(self, column: Column, read: Evaluator, states: dict[str, _State]) -> int | None:
        assert column.expr is not None
        if is_temporal(column.expr):
            value = _value_of(column.expr, states[column.name])
        else:
            values, known = read(column.expr, self.view.period_ms)
            value = int(values[0]) if bool(known[0]) else None
        fits = value is not None and column.format.minimum <= value <= column.format.maximum
        return value if fits else None


def _vector(value: int | None) -> Vector:
    return np.array([value or 0], np.int64), np.array([value is not None])


def _begun(expr: Expr) -> _State:
    if is_pulse(expr):
        return _Pulse()
    if expr.aggregate is Aggregate.EXPAVG:
        return _Average()
    return _Delta() if expr.aggregate in (Aggregate.DELTA, Aggregate.ADPDELTA) else _Window()


def _take(expr: Expr, state: _State, epoch: int, passes: bool, reading: int | None) -> bool:
    """Gives an aggregate an epoch's reading; whether a row is due by it."""
    if isinstance(state, _Delta):
        return _take_delta(expr, state, reading)
    if isinstance(state, _Average):
        _take_average(state, parameters(expr).window, reading)
        return True
    assert isinstance(state, _Window)
    return _take_window(expr, state, epoch, passes, reading)


def _take_average(state: _Average, weight: int, reading: int | None) -> None:
    if reading is None:
        return
    if state.value is None:
        state.value = reading << _EXPAVG_PLACES
        return
    apart = (reading << _EXPAVG_PLACES) - state.value
    state.value += -(-apart >> weight) if apart < 0 else apart >> weight


def _take_delta(expr: Expr, state: _Delta, reading: int | None) -> bool:
    have = parameters(expr)
    least = have.window | have.slide << 8
    if expr.aggregate is Aggregate.ADPDELTA and state.factor > 1:
        least *= state.factor
    state.now = reading
    due = reading is not None and (state.reported is None or abs(reading - state.reported) >= least)
    if not due and state.factor > 1:
        state.factor //= 2
    return due


def _take_pulse(expr: Expr, state: _Pulse, epoch: int, *, on: bool) -> bool:
    length = state.on
    ended = not on and length > 0
    state.on = length + 1 if on else 0
    if expr.aggregate is not Aggregate.PULSES:
        state.value = length if ended else 0
        return ended
    have = parameters(expr)
    window = have.window | have.slide << 8
    if epoch >= state.end:
        state.end = epoch - epoch % window + window
        state.value = 0
    state.value += ended
    return epoch + 1 == state.end and state.value > 0


def _take_window(expr: Expr, state: _Window, epoch: int, passes: bool, reading: int | None) -> bool:
    have = parameters(expr)
    if not counts_epochs(expr):
        place = state.since + 1
        _put(state, have.window, reading)
    else:
        passed = epoch - state.newest
        begins_anew = not state.ring or passed - 1 >= have.slide
        place = epoch % have.slide + 1 if begins_anew else state.since + passed
        _take_epoch(state, have.window, have.slide, epoch, place, passes, reading)
    ends = place >= have.slide
    state.since = place - have.slide if ends else place
    # Of one that began before the mote had the query it does not know all.
    return ends and (len(state.ring) == have.window or not counts_epochs(expr))


def _put(state: _Window, length: int, reading: int | None) -> None:
    state.ring = [*state.ring, reading][-length:]


def _append(state: _Window, length: int, passes: bool, reading: int | None) -> None:
    _put(state, length, reading)
    state.idle = 0 if passes else state.idle + 1


def _skip(state: _Window, length: int, missed: int) -> None:
    for _ in range(min(missed, length)):
        _append(state, length, False, None)


def _take_epoch(
    state: _Window, length: int, slide: int, epoch: int, place: int, passes: bool, reading: int | None
) -> None:
    if state.late is not None:
        _skip(state, length, state.since - 1)
        _append(state, length, *state.late)
        state.late = None
    missed = epoch - state.newest - 1 if state.ring else 0
    state.newest = epoch
    late = place > slide
    _skip(state, length, missed + 1 - (place - slide) if late else missed)
    if late:
        state.late = passes, reading
    else:
        _append(state, length, passes, reading)


def _value_of(expr: Expr, state: _State) -> int | None:
    match state:
        case _Pulse():
            return state.value if expr.aggregate is Aggregate.PULSES or state.value > 0 else None
        case _Delta():
            state.reported = state.now
            if state.factor < _ADAPTED_MAXIMUM:
                state.factor = max(1, state.factor * 2)
            return state.now
        case _Average():
            power, one = parameters(expr).power, 1 << _EXPAVG_PLACES
            return None if state.value is None else _quotient(state.value, one, power)
    return _OVER[expr.aggregate](state.ring, parameters(expr).power)


#: Of readings, NULL among them, and decimal places more.
_Over = Callable[[Sequence[int | None], int], int | None]


def _known(ring: Sequence[int | None]) -> list[int]:
    return [reading for reading in ring if reading is not None]


_OVER: dict[Aggregate, _Over] = {
    Aggregate.WINCOUNT: lambda ring, _: len(_known(ring)),
    Aggregate.WINAVG: lambda ring, power: _quotient(sum(_known(ring)), len(_known(ring)), power),
    Aggregate.WINSUM: lambda ring, _: _quotient(sum(_known(ring)), min(1, len(_known(ring)))),
    Aggregate.WINMIN: lambda ring, _: min(_known(ring), default=None),
    Aggregate.WINMAX: lambda ring, _: max(_known(ring), default=None),
    Aggregate.WINRAND: lambda ring, _: random.choice(_known(ring) or [None]),
    Aggregate.TREND: lambda ring, power: _quotient(*_slope(ring), power),
}


def _slope(ring: Sequence[int | None]) -> tuple[int, int]:
    """Of the least-squares line through the readings that are known, per row, as a quotient."""
    places = [(i, reading) for i, reading in enumerate(ring) if reading is not None]
    middle = sum(i for i, _ in places)
    weighted = [(len(places) * i - middle, i, reading) for i, reading in places]
    return sum(c * reading for c, _, reading in weighted), sum(c * i for c, i, _ in weighted)


def _quotient(dividend: int, divisor: int, power: int = 0) -> int | None:
    """``dividend * 10**power / divisor``, rounded half away from zero; None by 0, and beyond 32 bits."""
    if divisor == 0:
        return None
    value = build.rounded_quotient(dividend * 10**power, divisor)
    return value if -INT32_MAXIMUM <= value <= INT32_MAXIMUM else None
