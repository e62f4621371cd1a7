"""Aggregates over rows of the past, exactly, in one pass: memory grows with groups and epochs, and for MEDIAN, VARIANCE and their like
with the number of different values in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from skerry.execution.residual import to_array, type_of
from skerry.expressions import aggregate_states, build, extension_aggregates
from skerry.expressions.aggregate_values import list_type
from skerry.expressions.evaluate import Evaluator, Vector
from skerry.expressions.expression import Expr, Kind
from skerry.planner.model.epoch_facts import MOTES, REVISION
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.row_time import TIME
from skerry.storage.history.layout import Int64
from skerry.storage.history.reader import Samples
from skerry.storage.history.sorting import check_room, sequence
from skerry.streams.stream import common_ms
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.packets import Aggregate

#: Rows of intermediate tables, one for each piece and key, before they are brought together.
_COLLECTED = 1_000_000
_FOLDED = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
_SIMPLE = (Aggregate.COUNT, Aggregate.SUM, Aggregate.AVG, Aggregate.MIN, Aggregate.MAX)
_NODEID = build.attribute(BY_NAME["nodeid"])
_RANKED = (Aggregate.TOP, Aggregate.BOTTOM)
#: Sums are exact up to here after a multiplication with a quotient's power of ten.
_INT64_MAXIMUM = 2**63 - 1


@dataclass
class _Gathered:
    """A table that grows by pieces: ``keys`` tell rows apart, ``folds`` says what becomes of the other columns of equal ones."""

    keys: list[str]
    folds: dict[str, str]
    parts: list[pa.Table]
    size: int = 0

    def add(self, table: pa.Table, aggregates: Sequence[tuple[str, str, str]]) -> None:
        """Rows of a piece; ``aggregates``: (column, function, name that the result gets)."""
        grouped = table.group_by(self.keys).aggregate([(name, function) for name, function, _ in aggregates])
        named = {f"{name}_{function}": called for name, function, called in aggregates}
        self._keep(grouped.rename_columns([named.get(name, name) for name in grouped.column_names]))

    def _keep(self, table: pa.Table) -> None:
        self.parts.append(table)
        self.size += table.num_rows
        if self.size > _COLLECTED:
            whole = self.whole()
            self.parts, self.size = [whole], whole.num_rows if whole.num_rows < _COLLECTED // 2 else 0

    def whole(self) -> pa.Table:
        """All of it, each key once."""
        table = pa.concat_tables(self.parts)
        folded = table.group_by(self.keys).aggregate(list(self.folds.items()))
        named = {f"{name}_{function}": name for name, function in self.folds.items()}
        return folded.rename_columns([named.get(name, name) for name in folded.column_names])


class Aggregation:
    """The aggregates of one plan. ``by_epoch``: a row for each epoch of the query's, of each session, or of all networks,
    by UTC, where there is ``speed``: s of network time in one of that; else over everything. ``pace``: the same of each session's."""

    def __init__(
        self, plan: QueryPlan, *, by_epoch: bool, speed: float | None = None, pace: float = 1.0
    ) -> None:
        self._plan, self._by_epoch, self._speed, self._pace = plan, by_epoch, speed, pace
        self._nodes = plan.aggregates()
        self._groups = [f"g{i}" for i in range(len(plan.groups))]
        self._keys = ["session", "epoch", *self._groups]
        self._plain = _Gathered(self._keys, {"row": "max", "motes": "sum", "utc_ms": "min"}, [])
        self._values: dict[Expr, _Gathered] = {}
        #: Which motes are in each epoch, where that is asked for.
        self._motes = _Gathered(["session", "epoch", "nodeid"], {"rows": "sum"}, [])
        self._names: dict[tuple[Expr | None, str], str] = {}

    def add(self, samples: Samples, places: Int64) -> None:
        """Rows that are in the query."""
        if not len(places):
            return
        count = len(places)
        period = self._plan.period_ms
        evaluate = samples.rows.evaluate
        sessions = epochs = np.zeros(count, np.int64)
        if self._by_epoch:
            rows, speed = samples.rows, self._speed
            times = rows.sample_ms if speed is None else common_ms(rows.utc_ms, speed)
            epochs = times[places] // period
            sessions = samples.sessions[places] if speed is None else sessions
        keys: dict[str, pa.Array] = {"session": pa.array(sessions), "epoch": pa.array(epochs)}
        for name, expr in zip(self._groups, self._plan.groups, strict=True):
            values, known = evaluate(expr, period)
            keys[name] = pa.array(values[places], mask=~known[places])
        columns = dict(keys, row=pa.array(samples.numbers[places]), motes=pa.array(np.ones(count, np.int64)))
        columns["utc_ms"] = pa.array(self._begins(samples, epochs, places))
        wanted = [("row", "max", "row"), ("motes", "sum", "motes"), ("utc_ms", "min", "utc_ms")]
        for node in self._nodes:
            argument = node.args[0] if node.args else None
            if argument is None:
                continue
            values, known = evaluate(argument, period)
            array = pa.array(values[places], mask=~known[places])
            if node.aggregate not in _SIMPLE:
                self._add_values(node, keys, array, samples, places)
                continue
            for function in _functions(node):
                name = self._name(argument, function)
                if name not in columns:
                    columns[name] = array
                    wanted.append((name, function, name))
        self._plain.add(pa.table(columns), wanted)
        if any(node == MOTES for expr in self._plan.exprs() for node in expr.walk()):
            nodes, _ = evaluate(_NODEID, period)
            motes = {"session": keys["session"], "epoch": keys["epoch"], "nodeid": pa.array(nodes[places])}
            self._motes.add(pa.table(motes | {"rows": columns["motes"]}), [("rows", "sum", "rows")])

    def _begins(self, samples: Samples, epochs: Int64, places: Int64) -> Int64:
        """When the rows' epochs began, UTC in ms."""
        rows, speed = samples.rows, self._speed or self._pace
        utc = rows.utc_ms[places]
        times = rows.sample_ms[places] if self._speed is None else common_ms(utc, speed)
        into = (times - epochs * self._plan.period_ms) / speed
        return utc - np.rint(into).astype(np.int64) if self._by_epoch else utc

    def _name(self, argument: Expr, function: str) -> str:
        key = argument, function
        if key not in self._names:
            self._names[key] = f"a{len(self._names)}"
            self._plain.folds[self._names[key]] = _FOLDED[function]
        return self._names[key]

    def _add_values(
        self, node: Expr, keys: dict[str, pa.Array], array: pa.Array, samples: Samples, places: Int64
    ) -> None:
        """How often each value occurs; with its mote where that may count."""
        ranked = node.aggregate in _RANKED or _is_extension(node)
        names = [*self._keys, "value", *(["nodeid"] if ranked else [])]
        gathered = self._values.setdefault(node, _Gathered(names, {"times": "sum"}, []))
        columns = dict(keys, value=array, times=pa.array(np.ones(len(array), np.int64)))
        if ranked:
            nodes, _ = samples.rows.evaluate(_NODEID, self._plan.period_ms)
            columns["nodeid"] = pa.array(nodes[places])
        gathered.add(pa.table(columns).filter(array.is_valid()), [("times", "sum", "times")])

    def rows(self, last: int) -> list[tuple[int, dict[str, Any]]]:
        """The rows of the answer, in the order of their numbers. ``last``: number of the one over no rows at all."""
        if not self._plain.parts:
            # Over all rows there is one answer, even when there are none.
            return [] if self._by_epoch or self._plan.groups else self._over_nothing(last)
        table = self._plain.whole().sort_by("row")
        epochs = table.column("epoch").to_numpy()
        columns: dict[Expr, Vector] = {
            expr: _vector(table.column(name))
            for name, expr in zip(self._groups, self._plan.groups, strict=True)
        }
        columns[TIME] = _vector(table.column("utc_ms"))
        columns |= self._facts(table)
        evaluate = Evaluator(columns, epochs * self._plan.period_ms)
        lists: dict[Expr, pa.Array] = {}
        for node in self._nodes:
            if node.aggregate in _SIMPLE:
                evaluate.add(node, self._simple(node, table))
                continue
            found = self._of_keys(self._values[node], table)
            if node.kind is Kind.LIST:
                lists[node] = pa.array([_list(node, pairs) for pairs in found], list_type(node))
            else:
                evaluate.add(node, _numbers([_final(node, pairs) for pairs in found]))
        passing = np.flatnonzero(evaluate.truth(self._plan.having, self._plan.period_ms))
        if self._plan.order is not None:
            passing = passing[self._ordered(evaluate.at(passing), len(passing))]
        return self._projected(evaluate, lists, table.column("row").to_numpy(), passing)

    def _facts(self, table: pa.Table) -> dict[Expr, Vector]:
        """What the rows say of their epochs: nothing is late in the past."""
        counts: dict[tuple[int, int], int] = {}
        if self._motes.parts:
            whole = self._motes.whole()
            for key in zip(*(whole.column(name).to_pylist() for name in ("session", "epoch")), strict=True):
                counts[key] = counts.get(key, 0) + 1
        keys = zip(*(table.column(name).to_pylist() for name in ("session", "epoch")), strict=True)
        return {
            MOTES: _numbers([counts.get(key, 0) for key in keys]),
            REVISION: _numbers([0] * table.num_rows),
        }

    def _ordered(self, evaluate: Evaluator, rows: int) -> Int64:
        """Groups tell apart what the query's own order does not, then epochs."""
        plan, order = self._plan, self._plan.order
        assert order is not None
        check_room(order, rows)
        groups = replace(order, keys=(*order.keys, *((group, False) for group in plan.groups)))
        return sequence(groups, [evaluate(expr, plan.period_ms) for expr in groups.exprs()])

    def _projected(
        self, evaluate: Evaluator, lists: dict[Expr, pa.Array], numbers: Int64, passing: Int64
    ) -> list[tuple[int, dict[str, Any]]]:
        arrays = []
        for output in self._plan.outputs:
            if output.expr in lists:
                arrays.append(lists[output.expr].take(pa.array(passing)))
            else:
                values, known = evaluate(output.expr, self._plan.period_ms)
                arrays.append(to_array(values[passing], known[passing], output))
        schema = pa.schema([(output.name, type_of(output)) for output in self._plan.outputs])
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return list(zip(numbers[passing].tolist(), batch.to_pylist(), strict=True))

    def _over_nothing(self, last: int) -> list[tuple[int, dict[str, Any]]]:
        evaluate = Evaluator({MOTES: _numbers([0]), REVISION: _numbers([0])}, np.zeros(1, np.int64))
        lists = {}
        for node in self._nodes:
            if node.kind is Kind.LIST:
                lists[node] = pa.array([_list(node, [])], list_type(node))
            else:
                counts = node.aggregate is Aggregate.COUNT or node.final[:1] == ("distinct",)
                nothing = _final(node, []) if _is_extension(node) else None
                evaluate.add(node, _numbers([0 if counts else nothing]))
        passing = np.flatnonzero(evaluate.truth(self._plan.having, self._plan.period_ms))
        return self._projected(evaluate, lists, np.array([last]), passing)

    def _simple(self, node: Expr, table: pa.Table) -> Vector:
        if not node.args:
            return _vector(table.column("motes"))
        named = {function: table.column(self._names[node.args[0], function]) for function in _functions(node)}
        if node.aggregate is not Aggregate.AVG:
            return _vector(named[_functions(node)[-1]])
        totals, known = _vector(named["sum"])
        counts, _ = _vector(named["count"])
        pairs = zip(totals.tolist(), counts.tolist(), known.tolist(), strict=True)
        factor = 10**build.QUOTIENT_DIGITS
        return _numbers(
            [
                build.rounded_quotient(total * factor, count) if there else None
                for total, count, there in pairs
            ]
        )

    def _of_keys(self, gathered: _Gathered, table: pa.Table) -> list[list[tuple[int, ...]]]:
        """(value, times) or (value, times, mote) of each key of a table, in ascending order of the values."""
        found: dict[tuple[Any, ...], list[tuple[int, ...]]] = {}
        if gathered.parts:
            whole = gathered.whole().sort_by("value")
            names = ["value", "times", *(["nodeid"] if "nodeid" in whole.column_names else [])]
            pairs = zip(*(whole.column(name).to_pylist() for name in names), strict=True)
            for key, pair in zip(self._key_rows(whole), pairs, strict=True):
                found.setdefault(key, []).append(pair)
        return [found.get(key, []) for key in self._key_rows(table)]

    def _key_rows(self, table: pa.Table) -> list[tuple[Any, ...]]:
        return list(zip(*(table.column(name).to_pylist() for name in self._keys), strict=True))


def _functions(node: Expr) -> tuple[str, ...]:
    """What of pyarrow's an aggregate is made of."""
    if node.aggregate is Aggregate.AVG:
        return "count", "sum"
    return (node.aggregate.name.lower(),)


def _vector(column: pa.ChunkedArray) -> Vector:
    known = column.is_valid().to_numpy()
    return column.fill_null(0).to_numpy().astype(np.int64), known


def _numbers(found: Sequence[int | None]) -> Vector:
    known = [value is not None and abs(value) <= _INT64_MAXIMUM for value in found]
    values = [value if there and value is not None else 0 for value, there in zip(found, known, strict=True)]
    return np.array(values, np.int64), np.array(known, np.bool_)


def _is_extension(node: Expr) -> bool:
    return node.final[:1] == ("extension",)


def _final(node: Expr, pairs: Sequence[tuple[int, ...]]) -> int | None:
    """What a summary comes to that has seen each value so many times; see :mod:`skerry.expressions.aggregate_values`."""
    if _is_extension(node):
        aggregate = extension_aggregates.by_number(node.aggregate)
        return aggregate.evaluate(aggregate.over(pairs))
    count = sum(pair[1] for pair in pairs)
    match node.final:
        case ("variance",) | ("stddev",):
            return None if count < 2 else _spread(pairs, count, root=node.final == ("stddev",))
        case ("quantile", int(share), int(power), int(middle)):
            value = _at_share(pairs, count, share)
            return None if value is None else (2 * value + 2 * middle) * 5 * 10**power
        case ("quantile error", int(share), int(power), _):
            return None if _at_share(pairs, count, share) is None else (power > 0) * 5 * 10**power
        case ("distinct",):
            return len(pairs)
        case ("distinct error",):
            return 0
    raise ValueError(f"{node.final} is nothing that values can be asked for")


def _spread(pairs: Sequence[tuple[int, ...]], count: int, *, root: bool) -> int:
    """VARIANCE of a sample, or its root."""
    total = sum(value * times for value, times in pairs)
    squares = sum(value * value * times for value, times in pairs)
    numerator, denominator = count * squares - total * total, count * (count - 1)
    if root:
        return aggregate_states.rounded_root(numerator * 10 ** (2 * build.QUOTIENT_DIGITS), denominator)
    return aggregate_states.rounded(numerator * 10**build.QUOTIENT_DIGITS, denominator)


def _at_share(pairs: Sequence[tuple[int, ...]], count: int, millionths: int) -> int | None:
    rank = max(1, -(-count * millionths // 1_000_000))
    for value, times in pairs:
        rank -= times
        if rank <= 0:
            return value
    return None


def _list(node: Expr, pairs: Sequence[tuple[int, ...]]) -> list[Any]:
    if node.aggregate is Aggregate.HISTOGRAM:
        bins = int(node.final[1])
        counts = [0] * bins
        for value, times in pairs:
            counts[min(max(value, 0), bins - 1)] += times
        return counts
    scale = 10.0**node.digits if node.digits else 1
    sign = -1 if node.aggregate is Aggregate.TOP else 1
    ranked = sorted(
        ((sign * value, mote) for value, times, mote in pairs for _ in range(min(times, node.cells)))
    )
    return [
        {"nodeid": mote, "value": sign * value / scale if node.digits else sign * value}
        for value, mote in ranked[: node.cells]
    ]
