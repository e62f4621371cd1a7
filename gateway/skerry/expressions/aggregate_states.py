"""States of aggregates: how two become one, and what one says.

A state is a list of cells (count, value) as in a PARTIAL packet; all zero: over no reading. The layouts are those of
``firmware/query/operators/aggregate_*.c``, whose code runs here, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain

from skerry.expressions import extension_aggregates
from skerry.expressions.aggregate_code import Cell, State, code_of
from skerry_protocol.codes import Aggregate

#: Readings that fall into one cell of a histogram are counted in three bins.
BINS_OF_CELL = 3
#: Bits of a cell that stand for readings in COUNT DISTINCT.
BITS_OF_CELL = 48
#: From this number on aggregates are from outside this tree.
_OUTSIDE = 16


def merge_cells(kind: Aggregate, a: State, b: State) -> list[Cell]:
    """Two states of one aggregate as one. Raises LibraryError; KeyError: an extension's that is not loaded."""
    if kind is Aggregate.VARIANCE:
        return _merge_variance(a, b)
    if kind is Aggregate.REPRESENTATIVE:
        # Whom a mote counts as concerns its parent alone.
        return list(a)
    if kind >= _OUTSIDE:
        return extension_aggregates.by_number(kind).merge(a, b)
    return code_of(kind).merge(a, b)


def initial(kind: Aggregate, cells: int, reading: int, mote: int) -> list[Cell]:
    """The state over one reading of a mote, as its ``initialise`` has it. Raises as :func:`merge_cells`."""
    if kind >= _OUTSIDE:
        return extension_aggregates.by_number(kind).initial(reading, mote)
    return code_of(kind).initial(cells, reading, mote)


def fitting(total: int) -> int | None:
    """A sum; None beyond 64 bits."""
    return total if -(1 << 63) <= total < 1 << 63 else None


def _signed(value: int) -> int:
    return (value & 0xFFFFFFFF) - ((value & 0x80000000) << 1)


def _squares(state: State) -> int:
    if state[0][0] == 1 and state[0][1] is not None:
        # A mote's bits may not hold it.
        return state[0][1] ** 2
    return state[1][0] << 32 | ((state[1][1] or 0) & 0xFFFFFFFF)


def _merge_variance(a: State, b: State) -> list[Cell]:
    """In more bits than motes have, so that a network's states fit."""
    squares = _squares(a) + _squares(b)
    count, total = a[0][0] + b[0][0], None
    if a[0][1] is not None and b[0][1] is not None and squares < 1 << 64:
        total = fitting(a[0][1] + b[0][1])
    return [(count, total), (squares >> 32 & 0xFFFFFFFF, _signed(squares))]


def _bins(state: State) -> list[int]:
    """All bins of a histogram's cells."""
    parts = ((count, (value or 0) & 0xFFFF, (value or 0) >> 16 & 0xFFFF) for count, value in state)
    return list(chain.from_iterable(parts))


#: (low end, width, readings) of a cell of QUANTILES.
_Interval = tuple[int, int, int]


def _intervals(state: State) -> list[_Interval]:
    found = []
    for count, value in state:
        if count:
            low = (value or 0) & 0xFFFF
            found.append((low - (low >> 15 << 16), (value or 0) >> 16 & 0xFFFF, count))
    return found


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
