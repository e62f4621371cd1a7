"""Columns of a table as the language has them: scaled integers where they are numbers, or text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skerry.expressions.build import rounded_quotient
from skerry.expressions.evaluate import Vector
from skerry.planner.model.joined_tables import NUMBER_LIMIT, ColumnKind, TableColumn

Int64 = npt.NDArray[np.int64]
#: Decimal places of a column of floating-point numbers at most.
DIGITS_MAXIMUM = 6
NOT_UTF8 = "names of its columns are not UTF-8: save it as UTF-8"


class TableError(ValueError):
    """A table that cannot be used; one line."""


@dataclass(frozen=True)
class Reading:
    """A table as a file or a database gives it. By a column's name in lower case: ``troubles`` why it cannot be used, ``notes`` why it is
    of another type than one might think."""

    table: pa.Table
    troubles: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """A column's values: ``text`` or ``values`` scaled by ``described.digits``, with ``known`` where they are not NULL; of times, seconds
    of UTC. One with nothing in it, not even a type, is of either kind. ``exact``: of a table of sensors, which is joined with streams
    alone, all values in the type that it was declared with, instead of the others."""

    described: TableColumn
    values: Int64
    known: npt.NDArray[np.bool_]
    text: pa.Array | None = None
    #: The greatest of its numbers, whatever their signs, scaled as they are.
    most: int = 0
    exact: pa.Array | None = None

    @property
    def type(self) -> str:
        """For people: text, number or time."""
        kind = self.described.kind
        return str((ColumnKind.NUMBER if kind is ColumnKind.BLANK else kind).value)

    def of_kind(self, kind: ColumnKind) -> Column | None:
        """The column as one of texts, of numbers or of times; None: it is not."""
        if self.described.kind is ColumnKind.BLANK:
            nothing = pa.nulls(len(self.values), pa.string())
            return replace(self, text=nothing) if kind is ColumnKind.TEXT else self
        return self if kind is self.described.kind else None

    def vector(self, digits: int) -> Vector:
        """The numbers with so many decimal places, as a query was planned with; rounded where the file has more by now."""
        shift = digits - self.described.digits
        if shift >= 0:
            return self.values * 10**shift if shift else self.values, self.known
        rounded = [rounded_quotient(int(value), 10**-shift) for value in self.values]
        return np.array(rounded, np.int64), self.known


def columns_of(reading: Reading) -> tuple[dict[str, Column], dict[str, str]]:
    """The columns that can be used, by name in lower case, and why others cannot. Raises TableError where none can."""
    table = reading.table
    try:
        names = [name.lower() for name in table.column_names]
    except UnicodeDecodeError:
        raise TableError(NOT_UTF8) from None
    for separator, called in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and separator in names[0]:
            # A CSV file as spreadsheets write it where commas stand in numbers.
            raise TableError(f"its columns are separated by {called}: save it with commas")
    columns: dict[str, Column] = {}
    troubles: dict[str, str] = dict(reading.troubles)
    for name, array in zip(names, table.columns, strict=True):
        places = [place for place, other in enumerate(names, 1) if other == name]
        if len(places) > 1:
            troubles[name] = _repeated(name, places)
        if name in troubles:
            continue
        try:
            columns[name] = column_of(name, array)
        except TableError as error:
            troubles[name] = str(error)
    if troubles and not columns:
        raise TableError("; ".join(f"column {name}: {trouble}" for name, trouble in troubles.items()))
    return columns, troubles


def _repeated(name: str, places: list[int]) -> str:
    *others, last = map(str, places)
    which = f"columns {', '.join(others)} and {last}"
    if not name:
        # Spreadsheets write them behind the last column; a single one disturbs nobody.
        return f"{which} have no name: name them, or take them out"
    if len(places) == 2:
        return f"{which} are both called {name}: rename one"
    return f"{which} are all called {name}: rename all but one"


def column_of(name: str, array: pa.ChunkedArray) -> Column:
    """A column of a file. Raises TableError for values that the language does not have."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.cast(kind.value_type), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = array.combine_chunks().cast(pa.string())
        empty = np.zeros(len(text), np.int64)
        return Column(TableColumn(name, 0, ColumnKind.TEXT), empty, _known(text), text)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        # Times without a zone are UTC; NOW is in seconds.
        milliseconds = array.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
        return _integers(name, milliseconds, 3, ColumnKind.TIME)
    if pa.types.is_decimal(kind):
        return _of_decimals(name, array)
    if pa.types.is_floating(kind):
        return _decimals(name, array.cast(pa.float64()))
    if pa.types.is_null(kind):
        return _integers(name, array.cast(pa.int64()), 0, ColumnKind.BLANK)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _integers(name, array.cast(pa.int64()), 0)
    raise TableError(f"it is of type {kind}: numbers, times and texts can be joined")


def _integers(name: str, array: pa.ChunkedArray, digits: int, kind: ColumnKind = ColumnKind.NUMBER) -> Column:
    whole = array.combine_chunks()
    known = _known(whole)
    values = np.asarray(whole.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    # The least of 64 bits has no counterpart among them.
    most = max(-int(values.min()), int(values.max())) if len(values) else 0
    if most > NUMBER_LIMIT:
        raise _beyond()
    return Column(TableColumn(name, digits, kind), values, known, most=most)


def _beyond() -> TableError:
    return TableError(f"it has numbers beyond {NUMBER_LIMIT:.0e} in their last decimal place")


def _of_decimals(name: str, array: pa.ChunkedArray) -> Column:
    """With the decimal places of their type, or where that are more than can be reckoned with, as many as they need."""
    scale = array.type.scale
    for digits in (scale, *range(DIGITS_MAXIMUM, scale)):
        try:
            narrow = array.cast(pa.decimal128(18, digits))
            scaled = pc.multiply(narrow, pa.scalar(10**digits, pa.decimal128(19, 0)))
            return _integers(name, scaled.cast(pa.decimal128(38, 0), safe=False).cast(pa.int64()), digits)
        except (pa.ArrowInvalid, TableError):
            # There is no room for so many places, or there are more.
            continue
    raise _beyond()


def _decimals(name: str, array: pa.ChunkedArray) -> Column:
    """With as many decimal places as they need, and a query can reckon with."""
    numbers = array.combine_chunks()
    values = numbers.fill_null(np.nan).to_numpy(zero_copy_only=False)
    known = np.isfinite(values)
    values = np.where(known, values, 0.0)
    digits = 0
    while digits < DIGITS_MAXIMUM and not np.allclose(
        values * 10.0**digits, np.rint(values * 10.0**digits), rtol=1e-12, atol=1e-7
    ):
        digits += 1
    scaled = np.rint(values * 10.0**digits)
    most = float(np.abs(scaled).max()) if len(values) else 0.0
    if most > NUMBER_LIMIT:
        raise _beyond()
    return Column(TableColumn(name, digits), scaled.astype(np.int64), known, most=int(most))


def _known(array: pa.Array) -> npt.NDArray[np.bool_]:
    known: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return known
