"""Functions over arrays, as spectra are: what they take, and their values over columns of Arrow.

A call is a term whose ``value`` is the function's name. Shapes that it compares with are in it as they were when the query was asked, so
that executors need nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skerry.mining.peaks import peaks_of
from skerry.mining.shapes import Shapes
from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term

#: Numbers of all shapes of one call at most: they are in the query's plan.
SHAPES_MAXIMUM = 200_000
#: How each is written.
USAGE = {
    "nearest": "NEAREST(array, 'table'): the name of the nearest shape",
    "distance": "DISTANCE(array, 'table') from the nearest shape, or DISTANCE(array, 'table', 'name') from one",
    "peaks": "PEAKS(array, prominence) or PEAKS(array, prominence, width): the places of its peaks, from 0 on",
    "without": "WITHOUT(array, 'table', 'name', times): the array less so many times a shape",
}
RESULTS = {"nearest": plans.TEXT, "distance": plans.DOUBLE, "peaks": "int[]", "without": "double[]"}
#: Extensions that are not installed with the gateway.
_NEEDS = {"peaks": "scipy"}
Matrix = np.ndarray[Any, np.dtype[np.float64]]


def missing(function: str) -> str | None:
    """The package that a function needs and that is not installed; it is not loaded."""
    needed = _NEEDS.get(function)
    return needed if needed is not None and find_spec(needed) is None else None


def shapes_term(shapes: Mapping[str, Sequence[float]]) -> Term:
    """Shapes as an argument."""
    return Term("literal", plans.TEXT, (), json.dumps(shapes))


@lru_cache(16)
def _points(text: str) -> dict[str, Matrix]:
    return {name: np.array(points, np.float64) for name, points in json.loads(text).items()}


@lru_cache(16)
def _shapes(text: str) -> Shapes:
    return Shapes(json.loads(text))


@lru_cache(256)
def column_of(term: Term) -> str:
    """The name of the column in which executors give back a call's values."""
    return f"_{term.value}:{hashlib.blake2b(json.dumps(term.to_list()).encode(), digest_size=12).hexdigest()}"


def value_of(term: Term, args: Sequence[Any], count: int) -> pa.Array:
    """The values of a call in so many rows; NULL where the array is NULL, has gaps, or not as many numbers as the shapes."""
    column, *rest = [pa.repeat(arg, count) if isinstance(arg, pa.Scalar) else arg for arg in args[:1]] + [
        *args[1:]
    ]
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    match term.value:
        case "peaks":
            return _peaks(column, [float(one.as_py()) for one in rest])
        case "without":
            shape = _points(str(term.args[1].value))[str(term.args[2].value)]
            return _without(column, shape, rest[2], count)
    shapes = _shapes(str(term.args[1].value))
    places, rows = _rows(column, shapes.points)
    if term.value == "distance" and len(term.args) > 2:
        away = shapes.distances(rows)[:, shapes.names.index(str(term.args[2].value))]
        return _spread(pa.array(away, mask=np.isnan(away)), places, count)
    names, away = shapes.nearest(rows)
    return _spread(names if term.value == "nearest" else away, places, count)


def _rows(column: pa.Array, points: int) -> tuple[Matrix, Matrix]:
    """The places of the rows that have so many points, and these; NaN is a gap."""
    fits = pc.fill_null(pc.equal(pc.list_value_length(column), points), False)
    flat = column.filter(fits).flatten().cast(pa.float64()).to_numpy(zero_copy_only=False)
    return pc.indices_nonzero(fits).to_numpy(), flat.reshape(-1, points)


def _spread(values: pa.Array, places: Matrix, count: int) -> pa.Array:
    """Values at their places, and NULL at others."""
    at = np.full(count, -1, np.int64)
    at[places] = np.arange(len(places))
    return values.take(pa.array(at, mask=at < 0))


def _peaks(column: pa.Array, options: list[float]) -> pa.Array:
    found: list[list[int] | None] = []
    for one in column:
        values = None if not one.is_valid else one.values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        found.append(None if values is None or np.isnan(values).any() else peaks_of(values, *options))
    return pa.array(found, pa.list_(pa.int64()))


def _without(column: pa.Array, shape: Matrix, times: Any, count: int) -> pa.Array:
    places, rows = _rows(column, len(shape))
    if isinstance(times, pa.Scalar):
        times = pa.repeat(times, count)
    # Through texts, decimals are the nearest doubles.
    times = (times.cast(pa.string()) if pa.types.is_decimal(times.type) else times).cast(pa.float64())
    factors = times.to_numpy(zero_copy_only=False)[places]
    left = rows - factors[:, None] * shape
    kept = ~np.isnan(left).any(axis=1)
    offsets = np.concatenate([[0], np.cumsum(np.full(int(kept.sum()), len(shape)))])
    arrays = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(left[kept].ravel()))
    return _spread(arrays, places[kept], count)
