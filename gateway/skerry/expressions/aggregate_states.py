"""Aggregates whose state takes several cells: how two states become one, and what a state says.

A state is a list of cells (count, value) as in a PARTIAL packet; all zero: over no reading. The layouts are
those of ``firmware/query/operators/aggregate_*.c``, and merging gives what a mote would give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise

from skerry.expressions import extension_aggregates
from skerry_protocol.packets import Aggregate

#: (count, value), of motes in 16 and 32 bits, at the gateway in 32 and 64; value None: it left these, and means nothing.
Cell = tuple[int, int | None]
State = Sequence[Cell]
_COUNT_MAXIMUM = 0xFFFF
#: Readings that fall into one cell of a histogram are counted in three bins.
BINS_OF_CELL = 3
#: Bits of a cell that stand for readings in COUNT DISTINCT.
BITS_OF_CELL = 48


def merge_cells(kind: Aggregate, a: State, b: State) -> list[Cell]:
    """Two states of one aggregate as one."""
    own = _MERGES.get(kind)
    return own(a, b) if own is not None else extension_aggregates.by_number(kind).merge(a, b)


def initial(kind: Aggregate, cells: int, reading: int, mote: int) -> list[Cell]:
    """The state over one reading of a mote, as its ``initialise`` has it."""
    begin = _INITIAL.get(kind)
    if begin is None:
        return extension_aggregates.by_number(kind).initial(reading, mote)
    state = begin(reading, mote, cells)
    return [*state, *[(0, 0)] * (cells - len(state))]


def _initial_variance(reading: int, _mote: int, _cells: int) -> list[Cell]:
    # What is too large for 48 bits is merged with no other reading on motes.
    squares = reading * reading if abs(reading) < 1 << 24 else (1 << 64) - 1
    return [(1, reading), (squares >> 32 & 0xFFFF, _signed(squares))]


def _initial_histogram(reading: int, _mote: int, cells: int) -> list[Cell]:
    cell, place = divmod(min(max(reading, 0), cells * BINS_OF_CELL - 1), BINS_OF_CELL)
    return _in_cell(cell, int(place == 0), (0, 1, 1 << 16)[place])


def _initial_quantiles(reading: int, _mote: int, _cells: int) -> list[Cell]:
    return [(1, min(max(reading, -(1 << 15)), (1 << 15) - 1) & 0xFFFF)]


def _initial_distinct(reading: int, _mote: int, cells: int) -> list[Cell]:
    value = reading & 0xFFFFFFFF
    value = (value ^ value >> 16) * 0x7FEB352D & 0xFFFFFFFF
    value = (value ^ value >> 15) * 0x846CA68B & 0xFFFFFFFF
    cell, bit = divmod((value ^ value >> 16) % (cells * BITS_OF_CELL), BITS_OF_CELL)
    return _in_cell(cell, 0, 1 << bit) if bit < 32 else _in_cell(cell, 1 << bit - 32, 0)


def _in_cell(place: int, count: int, value: int) -> list[Cell]:
    """Cells up to one that alone is not zero."""
    cells: list[Cell] = [(0, 0)] * place
    return [*cells, (count, _signed(value))]


def fitting(total: int) -> int | None:
    """A sum; None beyond 64 bits."""
    return total if -(1 << 63) <= total < 1 << 63 else None


def _counts(a: int, b: int) -> int:
    return min(a + b, _COUNT_MAXIMUM)


def _signed(value: int) -> int:
    return (value & 0xFFFFFFFF) - ((value & 0x80000000) << 1)


def _squares(state: State) -> int:
    if state[0][0] == 1 and state[0][1] is not None:
        # A mote's bits may not hold it.
        return state[0][1] ** 2
    return state[1][0] << 32 | ((state[1][1] or 0) & 0xFFFFFFFF)


def _merge_variance(a: State, b: State) -> list[Cell]:
    squares = _squares(a) + _squares(b)
    count, total = a[0][0] + b[0][0], None
    if a[0][1] is not None and b[0][1] is not None and squares < 1 << 64:
        total = fitting(a[0][1] + b[0][1])
    return [(count, total), (squares >> 32 & 0xFFFFFFFF, _signed(squares))]


def _merge_best(largest: bool) -> Callable[[State, State], list[Cell]]:
    def merged(a: State, b: State) -> list[Cell]:
        sign = -1 if largest else 1
        cells = {cell for cell in (*a, *b) if cell[0]}
        best = sorted(cells, key=lambda cell: (sign * (cell[1] or 0), cell[0]))[: len(a)]
        return [*best, *[(0, 0)] * (len(a) - len(best))]

    return merged


def _bins(state: State) -> list[int]:
    """All bins of a histogram's cells."""
    parts = ((count, (value or 0) & 0xFFFF, (value or 0) >> 16 & 0xFFFF) for count, value in state)
    return list(chain.from_iterable(parts))


def _merge_histogram(a: State, b: State) -> list[Cell]:
    bins = list(map(_counts, _bins(a), _bins(b)))
    return [
        (bins[i], _signed(bins[i + 2] << 16 | bins[i + 1])) for i in range(0, len(bins), BINS_OF_CELL)
    ]  # fmt: skip


#: (low end, width, readings) of a cell of QUANTILES.
_Interval = tuple[int, int, int]


def _intervals(state: State) -> list[_Interval]:
    found = []
    for count, value in state:
        if count:
            low = (value or 0) & 0xFFFF
            found.append((low - (low >> 15 << 16), (value or 0) >> 16 & 0xFFFF, count))
    return found


def _joined(a: _Interval, b: _Interval) -> _Interval:
    return a[0], max(a[0] + a[1], b[0] + b[1]) - a[0], _counts(a[2], b[2])


def _merge_quantiles(a: State, b: State) -> list[Cell]:
    intervals: list[_Interval] = []
    for one in sorted([*_intervals(a), *_intervals(b)]):
        same = intervals and intervals[-1][:2] == one[:2]
        intervals.append(_joined(intervals.pop(), one) if same else one)
    while len(intervals) > len(a):
        unions = [_joined(one, other) for one, other in pairwise(intervals)]
        best = min(range(len(unions)), key=lambda i: unions[i][1] * unions[i][2])
        intervals[best : best + 2] = [unions[best]]
    cells: list[Cell] = [(count, _signed(width << 16 | low & 0xFFFF)) for low, width, count in intervals]
    return [*cells, *[(0, 0)] * (len(a) - len(cells))]


def _merge_distinct(a: State, b: State) -> list[Cell]:
    return [
        (c | d, _signed((v or 0) | (w or 0))) for (c, v), (d, w) in zip(a, b, strict=True)
    ]  # fmt: skip


def _merge_representative(a: State, _: State) -> list[Cell]:
    """Whom a mote counts as concerns its parent alone."""
    return list(a)


_MERGES: dict[Aggregate, Callable[[State, State], list[Cell]]] = {
    Aggregate.VARIANCE: _merge_variance,
    Aggregate.TOP: _merge_best(True),
    Aggregate.BOTTOM: _merge_best(False),
    Aggregate.HISTOGRAM: _merge_histogram,
    Aggregate.QUANTILES: _merge_quantiles,
    Aggregate.DISTINCT: _merge_distinct,
    Aggregate.REPRESENTATIVE: _merge_representative,
}


#: Of a reading, its mote, and cells: the first cells of a state, those behind are zero.
_INITIAL: dict[Aggregate, Callable[[int, int, int], list[Cell]]] = {
    Aggregate.COUNT: lambda _reading, _mote, _cells: [(1, 0)],
    **dict.fromkeys(
        (Aggregate.SUM, Aggregate.AVG, Aggregate.MIN, Aggregate.MAX, Aggregate.GROUP),
        lambda reading, _mote, _cells: [(1, reading)],
    ),
    **dict.fromkeys((Aggregate.TOP, Aggregate.BOTTOM), lambda reading, mote, _cells: [(mote + 1, reading)]),
    Aggregate.VARIANCE: _initial_variance,
    Aggregate.HISTOGRAM: _initial_histogram,
    Aggregate.QUANTILES: _initial_quantiles,
    Aggregate.DISTINCT: _initial_distinct,
}


def variance(state: State) -> tuple[int, int] | None:
    """The sample variance as numerator and denominator; None below two readings, and beyond the state's bits."""
    count, total = state[0]
    if count < 2 or total is None:
        return None
    return count * _squares(state) - total * total, count * (count - 1)


def rounded(numerator: int, denominator: int) -> int:
    """A quotient that is not negative, rounded half up."""
    return (2 * numerator + denominator) // (2 * denominator)


def rounded_root(numerator: int, denominator: int) -> int:
    """The root of a quotient, rounded to the nearest integer, exactly."""
    root = math.isqrt(numerator // denominator)
    return root + (4 * numerator > denominator * (2 * root + 1) ** 2)


def quantile_bounds(state: State, millionths: int) -> tuple[int, int] | None:
    """Between which values the smallest reading lies that a share of readings does not exceed; None without any."""
    intervals = _intervals(state)
    count = sum(weight for _, _, weight in intervals)
    if count == 0:
        return None
    rank = max(1, -(-count * millionths // 1_000_000))
    lows = sorted((low, weight) for low, _, weight in intervals)
    highs = sorted((low + width, weight) for low, width, weight in intervals)
    return _at_rank(lows, rank), _at_rank(highs, rank)


def _at_rank(weighted: Iterable[tuple[int, int]], rank: int) -> int:
    for value, weight in weighted:
        rank -= weight
        if rank <= 0:
            return value
    raise ValueError("the rank is beyond all readings")


def _clear_and_bits(state: State) -> tuple[int, int]:
    bits = BITS_OF_CELL * len(state)
    held = sum(count.bit_count() + ((value or 0) & 0xFFFFFFFF).bit_count() for count, value in state)
    # With no bit clear there is no telling; as if half a bit were is the usual way out.
    return bits - held, bits


def distinct(state: State) -> int:
    """Different readings, by linear counting: m ln(m / clear)."""
    clear, bits = _clear_and_bits(state)
    return round(bits * math.log(bits / max(clear, 0.5)))


def distinct_error(state: State) -> float:
    """Standard error of :func:`distinct` (Whang, Vander-Zanden and Taylor 1990, theorem 2)."""
    _, bits = _clear_and_bits(state)
    load = distinct(state) / bits
    return math.sqrt(bits * (math.exp(load) - load - 1))


def histogram(state: State, bins: int) -> list[int]:
    """Readings in each bin; the cells' bins beyond the last belong to it."""
    counted = _bins(state)
    return [*counted[: bins - 1], sum(counted[bins - 1 :])]


def ranking(state: State) -> list[tuple[int, int]]:
    """(mote, reading), best first."""
    return [(count - 1, value or 0) for count, value in state if count]
