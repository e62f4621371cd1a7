"""Table functions that mine streams: what each takes and gives, and an operator of it that takes rows and gives what it has found.

Operators are :mod:`skerry.mining`'s. Arguments are checked where a query is planned; operators are made in executors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from skerry.mining.clusters import Clusters
from skerry.mining.errors import MiningError, check_positive, check_share, check_whole
from skerry.mining.moments import NearestMoments, PeakMoments, Times
from skerry.mining.partial_patterns import PartialPatterns
from skerry.mining.periods import Periods
from skerry.mining.subsequences import Subsequences
from skerry.planner.model import source_plans as plans
from skerry.sensors.array_calls import SHAPES_MAXIMUM

#: Symbols that periods are counted of, at most; of long ones fewer.
_SYMBOLS, _COUNTERS = 100, 50_000_000
#: What each function gives besides its own columns: how many rows that is over.
ROWS = "rows"


class TableFunction(ABC):
    """With its arguments: what stands behind its columns, of which there are so many: the shapes of tables that are named there, by name,
    and numbers; ``data``: as it was (:meth:`to_bytes`). Raises MiningError."""

    #: How it is written, and what it gives, with types.
    usage: ClassVar[str]
    columns: ClassVar[dict[str, str]]
    #: Whether each source is mined by itself, and not all together; whether it is of symbols, which stand in one column.
    by_source: ClassVar[bool] = True
    of_symbols: ClassVar[bool] = True
    #: Whether it is of one column; whether some of what is in its rows is told when later ones have come, or none follow.
    of_one: ClassVar[bool] = True
    holds_back: ClassVar[bool] = False
    #: How many tables of shapes it takes, how many numbers, least and most, and a package that it needs.
    tables: ClassVar[int] = 0
    numbers: ClassVar[tuple[int, int]] = (1, 2)
    needs: ClassVar[str | None] = None
    _kind: ClassVar[Any]

    def __init__(self, arguments: Sequence[Any], columns: int, data: bytes | None = None) -> None:
        self._arguments, self._count = arguments, columns
        self.check()
        self._operator: Any = self._kind.from_bytes(data) if data is not None else None

    @classmethod
    def missing(cls) -> str | None:
        """The package that it needs and that is not installed; it is not loaded."""
        return cls.needs if cls.needs is not None and find_spec(cls.needs) is None else None

    @abstractmethod
    def check(self) -> None:
        """Its arguments. Raises MiningError."""

    @abstractmethod
    def _new(self) -> Any:
        """Its operator, without rows."""

    @abstractmethod
    def _add(self, columns: Sequence[pa.Array], sources: pa.Array, times: Times) -> None:
        """See :meth:`add`."""

    @abstractmethod
    def _found(self, *, over: bool) -> pa.Table:
        """See :meth:`found`."""

    def add(self, columns: Sequence[pa.Array], sources: pa.Array, times: Times) -> None:
        """The next rows, with the source and the time of each, in µs. Raises MiningError."""
        if self._operator is None:
            self._operator = self._new()
        self._add([symbols_of(columns[0])] if self.of_symbols else columns, sources, times)

    def found(self, *, over: bool) -> pa.Table:
        """What has been found, with the function's columns; ``over``: no rows follow. Raises MiningError."""
        return self._found(over=over).select(list(self.columns))

    def to_bytes(self) -> bytes:
        """For the next one."""
        found: bytes = self._operator.to_bytes()
        return found

    def _whole(self, place: int, name: str, least: int, most: int, default: int | None = None) -> int:
        if place >= len(self._arguments) and default is not None:
            return default
        value = self._arguments[place]
        if value != int(value):
            raise MiningError(f"{name} is {value:g}: it is a whole number")
        check_whole(name, int(value), least, most)
        return int(value)

    def _share(self, place: int, name: str, default: float) -> float:
        value = self._arguments[place] if place < len(self._arguments) else default
        check_share(name, value)
        return value


def symbols_of(values: pa.Array) -> pa.Array:
    """Symbols as they are mined: of other numbers than whole ones the whole number below."""
    if not pa.types.is_decimal(values.type) and not pa.types.is_floating(values.type):
        return values
    doubles = values.cast(pa.float64())
    near = pc.less(pc.abs(doubles), 2.0**62)
    return pc.floor(pc.if_else(near, doubles, None)).cast(pa.int64())


class PeriodsFunction(TableFunction):
    """Symbols that come back after so many rows."""

    usage = "PERIODS(table.symbol, longest [, confidence])"
    columns: ClassVar = {
        "symbol": plans.TEXT, "length": plans.INT, "offset": plans.INT, "matches": plans.INT, "confidence": plans.DOUBLE,
    }  # fmt: skip
    _kind = Periods

    def check(self) -> None:
        """See :class:`TableFunction`."""
        self._longest = self._whole(0, "the longest period", 1, 9_999)
        self._confidence = self._share(1, "the confidence", 0.8)

    def _new(self) -> Periods:
        counters = self._longest * (self._longest + 1) // 2
        return Periods(self._longest, max(1, min(_SYMBOLS, _COUNTERS // counters)))

    def _add(self, columns: Sequence[pa.Array], sources: pa.Array, times: Times) -> None:
        del sources, times
        self._operator.add(columns[0])

    def _found(self, *, over: bool) -> pa.Table:
        del over
        found: pa.Table = self._operator.found(self._confidence)
        # PERIOD is a word of the language.
        return found.rename_columns({"period": "length"})


class PatternsFunction(TableFunction):
    """What comes at some places of most periods."""

    usage = "PATTERNS(table.symbol, period [, support])"
    columns: ClassVar = {"pattern": plans.TEXT, "support": plans.DOUBLE, "periods": plans.INT}
    needs = "mlxtend"
    _kind = PartialPatterns

    def check(self) -> None:
        """See :class:`TableFunction`."""
        self._period = self._whole(0, "the period", 1, 10_000)
        self._support = self._share(1, "the support", 0.5)

    def _new(self) -> PartialPatterns:
        return PartialPatterns(self._period)

    def _add(self, columns: Sequence[pa.Array], sources: pa.Array, times: Times) -> None:
        del sources, times
        self._operator.add(columns[0])

    def _found(self, *, over: bool) -> pa.Table:
        del over
        found = self._operator.found(self._support)
        return found.append_column("periods", pa.array([self._operator.periods] * found.num_rows, pa.int64()))


class SubsequencesFunction(TableFunction):
    """Runs of symbols that come often in several sources."""

    usage = "SUBSEQUENCES(table.symbol, shortest, longest, count [, sources])"
    columns: ClassVar = {"run": plans.TEXT, "sources": plans.INT, "count": plans.INT}
    by_source = False
    numbers = (3, 4)
    _kind = Subsequences

    def check(self) -> None:
        """See :class:`TableFunction`."""
        self._longest = self._whole(1, "the longest run", 1, 64)
        self._shortest = self._whole(0, "the shortest run", 1, self._longest)
        self._often = self._whole(2, "how often a run comes", 1, 1 << 60)
        self._sources = self._whole(3, "in how many sources", 1, 1 << 60, 1)

    def _new(self) -> Subsequences:
        return Subsequences(self._shortest, self._longest)

    def _add(self, columns: Sequence[pa.Array], sources: pa.Array, times: Times) -> None:
        del times
        self._operator.add(sources, columns[0])

    def _found(self, *, over: bool) -> pa.Table:
        del over
        if self._sources > self._operator.streams:
            return pa.table(
                {
                    "run": pa.array([], pa.string()),
                    "sources": pa.array([], pa.int64()),
                    "count": pa.array([], pa.int64()),
                }
            )
        found = self._operator.found(self._often, self._sources)
        runs = [" ".join(symbols) for symbols in found["symbols"].to_pylist()]
        return pa.table(
            {"run": pa.array(runs, pa.string()), "sources": found["streams"], "count": found["count"]}
        )


class ClustersFunction(TableFunction):
    """Clusters of points, and when they are no more what they were."""

    usage = "CLUSTERS(table.column, …, radius [, half-life in rows])"
    columns: ClassVar = {
        "cluster": plans.INT, "weight": plans.DOUBLE, "middle": "double[]", "drifts": plans.INT, "drifted": plans.INT,
    }  # fmt: skip
    by_source = False
    of_symbols = of_one = False
    needs = "river"
    _kind = Clusters

    def check(self) -> None:
        """See :class:`TableFunction`."""
        check_whole("how many columns are clustered", self._count, 1, 256)
        check_positive("the radius", self._arguments[0])
        self._half_life = self._whole(1, "the half-life", 1, 1_000_000_000, 10_000)

    @property
    def _names(self) -> list[str]:
        return [f"a{place}" for place in range(self._count)]

    def _new(self) -> Clusters:
        return Clusters(self._names, self._arguments[0], self._half_life)

    def _add(self, columns: Sequence[pa.Array], sources: pa.Array, times: Times) -> None:
        del sources, times
        self._operator.add(pa.table([column.cast(pa.float64()) for column in columns], self._names))

    def _found(self, *, over: bool) -> pa.Table:
        del over
        found, drifts = self._operator.found(), self._operator.drifts
        count = found.num_rows
        found = found.append_column("drifts", pa.array([len(drifts)] * count, pa.int64()))
        return found.append_column("drifted", pa.array([drifts[-1] if drifts else None] * count, pa.int64()))


class PeaksFunction(TableFunction):
    """Peaks along a stream of numbers, each of which is told once."""

    usage = "PEAKS(table.column, prominence, window in rows [, height])"
    columns: ClassVar = {
        "peak": plans.TIMESTAMP,
        "row": plans.INT,
        "height": plans.DOUBLE,
        "prominence": plans.DOUBLE,
    }
    of_symbols = False
    holds_back = True
    numbers = (2, 3)
    needs = "scipy"
    _kind = PeakMoments

    def check(self) -> None:
        """See :class:`TableFunction`."""
        self._window = self._whole(1, "the window", 3, 100_000)
        self._height = self._arguments[2] if len(self._arguments) > 2 else None
        self._new()

    def _new(self) -> PeakMoments:
        return PeakMoments(self._arguments[0], self._window, self._height)

    def _add(self, columns: Sequence[pa.Array], sources: pa.Array, times: Times) -> None:
        del sources
        self._operator.add(columns[0].cast(pa.float64()), times)

    def _found(self, *, over: bool) -> pa.Table:
        return self._operator.found(over=over)


class NearestFunction(TableFunction):
    """When a stream of numbers was nearest to each of some known shapes."""

    usage = "NEAREST(table.column, 'table of shapes')"
    columns: ClassVar = {
        "shape": plans.TEXT, "distance": plans.DOUBLE, "since": plans.TIMESTAMP, "until": plans.TIMESTAMP, "row": plans.INT,
    }  # fmt: skip
    of_symbols = False
    tables = 1
    numbers = (0, 0)
    _kind = NearestMoments

    def check(self) -> None:
        """See :class:`TableFunction`."""
        if sum(map(len, self._arguments[0].values())) > SHAPES_MAXIMUM:
            raise MiningError(f"the shapes are too many: they have at most {SHAPES_MAXIMUM} points together")
        self._new()

    def _new(self) -> NearestMoments:
        return NearestMoments(self._arguments[0])

    def _add(self, columns: Sequence[pa.Array], sources: pa.Array, times: Times) -> None:
        del sources
        self._operator.add(columns[0].cast(pa.float64()), times)

    def _found(self, *, over: bool) -> pa.Table:
        del over
        return self._operator.found()


FUNCTIONS: dict[str, type[TableFunction]] = {
    "periods": PeriodsFunction,
    "patterns": PatternsFunction,
    "subsequences": SubsequencesFunction,
    "clusters": ClustersFunction,
    "peaks": PeaksFunction,
    "nearest": NearestFunction,
}
