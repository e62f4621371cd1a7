"""Rows joined with tables, over Arrow: a batch with each row as often as it has partners, and their columns beside its own.

One equality between a table's columns and what was there before finds the pairs that may be; the whole condition is asked of these. Without
an equality it is asked of all pairs. A query's rows are the same whether executors, the gateway or the past's engine joins them.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from skerry.planner.model import source_plans as plans
from skerry.planner.model.source_plans import Term, conjuncts
from skerry.planner.model.table_lookups import Lookups, TableLookup
from skerry.sensors.evaluate import arrow_type, comparable, evaluate, passes
from skerry.sensors.folding import normal
from skerry.sensors.readings import Reading, Readings

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Columns = Mapping[str, pa.Array]
#: Pairs whose condition is asked at a time.
_PAIRS = 1_000_000
#: So many rows of a table may have what a row of the stream is looked up by, so that nobody holds up others.
PARTNERS_MAXIMUM = 5_000
#: Rows of tables whose keys are kept in order, of all queries of a process.
_KEPT_ROWS = 20_000_000


@dataclass(frozen=True)
class _Keyed:
    """A table's rows by what a query finds them by: ``values``, each once; of the i-th one rows ``order[first[i]:first[i + 1]]``.
    ``equality``: of what they are, and what is looked up among them; None: nothing is."""

    columns: Columns
    rows: int
    equality: tuple[Term, Term] | None
    values: pd.Index[Any] | None
    order: Int64
    first: Int64


#: By table and object: what was made of a reading, or why nothing can be.
_kept: OrderedDict[tuple[TableLookup, int], tuple[Reading, _Keyed | str]] = OrderedDict()
_lock = threading.Lock()


def looked_up(
    lookups: Lookups, numbers: Int64, columns: Columns, readings: Readings | None
) -> tuple[Int64, dict[str, pa.Array]]:
    """Rows with their numbers in the log, in its order → the same with the tables' columns, each row as often as it has partners."""
    places = pc.indices_nonzero(passes(lookups.before, columns, len(numbers)))
    chosen = numbers[places.to_numpy()]
    own = {name: column.take(places) for name, column in columns.items()}
    parts = [
        _joined(
            lookups, chosen[begin:end], {n: c.slice(begin, end - begin) for n, c in own.items()}, readings
        )
        for begin, end in _alike(lookups, chosen, readings)
    ]
    if len(parts) == 1:
        return parts[0]
    names = [*own, *lookups.own()]
    return np.concatenate([part for part, _ in parts]), {
        name: pa.concat_arrays([of[name] for _, of in parts]) for name in names
    }


def _alike(lookups: Lookups, numbers: Int64, readings: Readings | None) -> Iterator[tuple[int, int]]:
    """Rows that meet the same readings of all tables; of no rows one part."""
    changes = []
    if readings is not None and len(numbers):
        changes = readings.changes(lookups.readings, int(numbers[0]), int(numbers[-1]))
    bounds = [0, *np.searchsorted(numbers, changes).tolist(), len(numbers)]
    yield from [pair for pair in itertools.pairwise(bounds) if pair[0] < pair[1]] or [(0, 0)]


def _joined(
    lookups: Lookups, numbers: Int64, own: Columns, readings: Readings | None
) -> tuple[Int64, dict[str, pa.Array]]:
    """Rows that meet the same readings."""
    rows, columns = np.arange(len(numbers)), dict(own)
    for lookup in lookups.tables:
        keyed = _keyed(lookup, int(numbers[0]) if len(numbers) else 0, readings)
        left, right = _pairs(lookup, keyed, columns, len(rows))
        if lookup.left:
            left, right = _with_lonely(left, right, len(rows))
        rows, taken = rows[left], pa.array(left)
        columns = {name: column.take(taken) for name, column in columns.items()}
        # A place that is NULL gives NULLs.
        met = pa.array(right, mask=right < 0)
        columns |= {name: column.take(met) for name, column in keyed.columns.items()}
    return numbers[rows], columns


def misfit(lookup: TableLookup, reading: Reading) -> str | None:
    """Why rows cannot be joined with a reading; None: they can."""
    found = _prepared(lookup, reading)
    return found if isinstance(found, str) else None


def _keyed(lookup: TableLookup, row: int, readings: Readings | None) -> _Keyed:
    """The table as a row of the log meets it; one that was never there has no rows."""
    for reading in readings.met(lookup.reading, row) if readings is not None else ():
        found = _prepared(lookup, reading)
        if not isinstance(found, str):
            return found
    return _made(lookup, {name: pa.nulls(0, arrow_type(kind)) for name, kind in lookup.columns}, 0)


def _prepared(lookup: TableLookup, reading: Reading) -> _Keyed | str:
    """What rows find partners by, or why they cannot."""
    known = lookup, id(reading)
    with _lock:
        kept = _kept.get(known)
        if kept is not None and kept[0] is reading:
            _kept.move_to_end(known)
            return kept[1]
    found: _Keyed | str
    columns = {name: reading.typed(name, kind) for name, kind in lookup.columns}
    lacking = next((name for name, column in columns.items() if column is None), None)
    if lacking is not None:
        found = _misfit(lacking, dict(lookup.columns)[lacking])
    else:
        found = _made(lookup, columns, reading.rows)
        most = int(np.diff(found.first).max(initial=0))
        if most > PARTNERS_MAXIMUM:
            found = (
                f"a row would be compared with {most:,} of its rows, and at most {PARTNERS_MAXIMUM:,} may be"
            )
    with _lock:
        _kept[known] = reading, found
        while len(_kept) > 1 and sum(one.rows for one, _ in _kept.values()) > _KEPT_ROWS:
            _kept.popitem(last=False)
    return found


def _misfit(column: str, kind: str) -> str:
    if kind == plans.NULL:
        return f"column {column} had nothing in it, so that it had no type, when the query was asked: ask it again"
    return f"column {column} is no longer {kind.upper()}, as it was when the query was asked, or gone"


def _made(lookup: TableLookup, read: Mapping[str, pa.Array], rows: int) -> _Keyed:
    columns = {f"{lookup.called}.{name}": column for name, column in read.items()}
    everything, equality = np.arange(rows), _equality(lookup)
    if equality is None:
        return _Keyed(columns, rows, None, None, everything, np.array([0, rows]))
    key, known = _key(*equality, columns, rows)
    at, values = pd.factorize(key[known])
    # The index finds by hash, once that is made of it.
    values = pd.Index(values)
    values.get_indexer(values[:1])
    order = everything[known][np.argsort(at, kind="stable")]
    first = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=len(values)))])
    return _Keyed(columns, rows, equality, values, order, first.astype(np.int64))


def _key(term: Term, other: Term, columns: Columns, count: int) -> tuple[npt.NDArray[Any], Mask]:
    """One side of an equality, as it is compared with the other, and where it is not NULL."""
    key = normal(comparable(evaluate(term, columns, count), term.type, term.type, other.type))
    known = key.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(key.type):
        # Of the same places: the same text is the same number.
        key = key.cast(pa.string())
    if pa.types.is_timestamp(key.type):
        key = key.cast(pa.int64())
    if pa.types.is_boolean(key.type):
        key = key.cast(pa.int8())
    nothing = "" if pa.types.is_string(key.type) else 0
    return key.fill_null(nothing).to_numpy(zero_copy_only=False), known


def _equality(lookup: TableLookup) -> tuple[Term, Term] | None:
    """Both sides of an equality by which the table's rows are found: its own, and of what was there before; None: all may be met."""
    for part in conjuncts(lookup.on):
        if part.op != "=":
            continue
        for inner, outer in (part.args, part.args[::-1]):
            of_table = [_is_own(lookup, name) for name in inner.columns()]
            if of_table and all(of_table) and not any(_is_own(lookup, name) for name in outer.columns()):
                return inner, outer
    return None


def found_by(lookup: TableLookup) -> list[str]:
    """The table's columns by which its rows are found; [] where each is compared with all."""
    equality = _equality(lookup)
    return [] if equality is None else list(dict.fromkeys(equality[0].columns()))


def _is_own(lookup: TableLookup, column: str) -> bool:
    called, point, name = column.partition(".")
    return bool(point) and called == lookup.called and name in dict(lookup.columns)


def _pairs(lookup: TableLookup, keyed: _Keyed, columns: Columns, count: int) -> tuple[Int64, Int64]:
    """Rows, and those of the table that each meets, in the order of both."""
    if keyed.equality is None or keyed.values is None:
        first, partners = np.zeros(count, np.int64), np.full(count, keyed.rows)
    else:
        inner, outer = keyed.equality
        key, known = _key(outer, inner, columns, count)
        at = keyed.values.get_indexer(key) if count else np.zeros(0, np.int64)
        known = known & (at >= 0)
        sizes = np.diff(keyed.first)
        first = keyed.first[:-1][at] if len(sizes) else np.zeros(count, np.int64)
        partners = np.where(known, sizes[at], 0) if len(sizes) else np.zeros(count, np.int64)
    ends = np.cumsum(partners)
    found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    begin, done = 0, 0
    while begin < count:
        # One row at least, however many partners it has.
        end = max(int(np.searchsorted(ends, done + _PAIRS, "right")), begin + 1)
        found.append(_passing(lookup, keyed, columns, begin, first[begin:end], partners[begin:end]))
        begin, done = end, int(ends[end - 1])
    return np.concatenate([left for left, _ in found]), np.concatenate([right for _, right in found])


def _passing(
    lookup: TableLookup, keyed: _Keyed, columns: Columns, begin: int, first: Int64, partners: Int64
) -> tuple[Int64, Int64]:
    """Of rows from ``begin`` on, each with its possible partners, the pairs for which the condition is true."""
    total = int(partners.sum())
    left = begin + np.repeat(np.arange(len(partners)), partners)
    before = np.cumsum(partners) - partners
    right = keyed.order[np.arange(total) + np.repeat(first - before, partners)]
    if lookup.on is None or not total:
        return left, right
    own, met, taken = pa.array(left), pa.array(right), dict[str, pa.Array]()
    for name in {*lookup.on.columns()}:
        if name in keyed.columns:
            taken[name] = keyed.columns[name].take(met)
        elif name in columns:
            taken[name] = columns[name].take(own)
    passed = passes(lookup.on, taken, total).to_numpy(zero_copy_only=False)
    return left[passed], right[passed]


def _with_lonely(left: Int64, right: Int64, count: int) -> tuple[Int64, Int64]:
    """With the rows that meet none, whose partner is -1, where they stand."""
    lonely = np.setdiff1d(np.arange(count), left)
    rows, partners = np.concatenate([left, lonely]), np.concatenate([right, np.full(len(lonely), -1)])
    order = np.argsort(rows, kind="stable")
    return rows[order], partners[order]
