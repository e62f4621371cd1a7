"""Rows of sensors folded by keys: what aggregates are made of, in a form that adds up to the same in whatever order it is added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skerry.planner.model import source_plans as plans
from skerry.planner.model import source_windows as windows
from skerry.planner.model.source_windows import State
from skerry.sensors.evaluate import evaluate

#: Sums of integers, and of decimals: exact, with room for as many rows as there can be.
_WHOLE, _EXACT = pa.decimal128(38, 0), pa.decimal256(76, 9)
#: A sum of doubles is an integer, in units of 2 to the power of this below the point: that adds up exactly.
POINT = 1200
_MANTISSA, _HALF = 53, 26
_CELL = "cell"
_FUNCTIONS = {
    windows.COUNT: "count",
    windows.LEAST: "min",
    windows.GREATEST: "max",
    windows.DISTINCT: "distinct",
    windows.LISTED: "list",
}


def normal(array: pa.Array) -> pa.Array:
    """Doubles that compare alike are alike: there is one zero; what is no number is none."""
    if not pa.types.is_floating(array.type):
        return array
    return pc.add(pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array), 0.0)


def folded(
    keys: Mapping[str, pa.Array], states: Sequence[State], columns: Mapping[str, pa.Array], count: int
) -> pa.Table:
    """So many rows by keys, of which there is one at least: the keys, and for each state a column ``s0``, ``s1``, …"""
    names = list(keys)
    numbered = pa.table([*keys.values(), pa.array(np.arange(count))], [*names, _CELL])
    found = numbered.group_by(names, use_threads=False).aggregate([(_CELL, "list")])
    rows = found.column(f"{_CELL}_list").combine_chunks()
    sizes = rows.value_lengths().to_numpy()
    cells = np.empty(count, np.int64)
    cells[rows.flatten().to_numpy()] = np.repeat(np.arange(len(sizes)), sizes)
    made = {name: found.column(name) for name in names}
    for i, state in enumerate(states):
        made[f"s{i}"] = _state(state, columns, cells, len(sizes), sizes)
    return pa.table(made)


def _state(
    state: State,
    columns: Mapping[str, pa.Array],
    cells: npt.NDArray[np.int64],
    count: int,
    sizes: npt.NDArray[np.int64],
) -> pa.Array:
    if state.argument is None:
        return pa.array(sizes, pa.int64())
    values = normal(evaluate(state.argument, columns, len(cells)))
    if state.what == windows.SUM and pa.types.is_floating(values.type):
        return pa.array(exact_sums(values, cells, count), pa.string())
    function = _FUNCTIONS.get(state.what, "sum")
    if function == "sum":
        values = values.cast(_WHOLE if state.argument.type == plans.INT else _EXACT)
    option = pc.CountOptions(mode="only_valid") if function in ("count", "distinct") else None
    table = pa.table([pa.array(cells), values], [_CELL, "value"])
    done = table.group_by(_CELL, use_threads=False).aggregate([("value", function, option)])
    order = pc.sort_indices(done.column(_CELL))
    return done.column(f"value_{function}").take(order).combine_chunks()


def exact_sums(values: pa.Array, cells: npt.NDArray[np.int64], count: int) -> list[str]:
    """By cell the exact sum of some doubles, as a number in hexadecimal (see :data:`POINT`), or as ``inf``, ``-inf`` or ``nan``."""
    there = values.is_valid().to_numpy(zero_copy_only=False)
    numbers = values.to_numpy(zero_copy_only=False)[there]
    cells = cells[there]
    finite = np.isfinite(numbers)
    totals = [0] * count
    mantissas, exponents = np.frexp(numbers[finite])
    whole = np.ldexp(mantissas, _MANTISSA).astype(np.int64)
    codes = cells[finite] * 4096 + exponents.astype(np.int64) + 2048
    distinct, among = np.unique(codes, return_inverse=True)
    high, low = np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.int64)
    np.add.at(high, among, whole >> _HALF)
    np.add.at(low, among, whole & ((1 << _HALF) - 1))
    for code, above, below in zip(distinct.tolist(), high.tolist(), low.tolist(), strict=True):
        cell, exponent = divmod(code, 4096)
        totals[cell] += ((above << _HALF) + below) << (exponent - 2048 - _MANTISSA + POINT)
    found = [hex(total) for total in totals]
    beyond: dict[int, float] = {}
    for cell, number in zip(cells[~finite].tolist(), numbers[~finite].tolist(), strict=True):
        beyond[cell] = beyond.get(cell, 0.0) + number
    for cell, number in beyond.items():
        found[cell] = str(number)
    return found
