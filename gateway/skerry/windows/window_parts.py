"""Rows that windows gave, with their groups, as each user sees them: his columns, his HAVING, his order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from skerry.execution.deliveries import Delivery
from skerry.execution.partial_panes import cells_of
from skerry.execution.range_index import Int64
from skerry.execution.residual import Residual, Rows
from skerry.execution.window_rows import NULL
from skerry.expressions.build import rounded_quotient
from skerry.expressions.evaluate import Evaluator, Values, Vector, rounded_quotients
from skerry.expressions.expression import Expr, Kind
from skerry.planner.model.epoch_facts import MOTES, REVISION
from skerry.planner.model.frames import (
    EPOCH,
    SUM_MAXIMUM,
    Window,
    window_of,
)
from skerry.planner.model.plans import Output, QueryPlan
from skerry.planner.model.row_time import NETWORK_TIME, TIME
from skerry.windows.courses import Course
from skerry.windows.results import Result
from skerry_protocol.codes import Aggregate

#: The number of each text that has been a group.
Texts = dict[str, int]
#: When windows end that no FOR ends.
ALWAYS = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class WindowView:
    """A user's query on the windows that it has over streams of one session of the network.

    They begin at ``since_ms`` at the earliest and end at ``until_ms`` at the latest, and were brought by rows ``first`` .. ``end`` - 1
    of the log.
    """

    residual: Residual
    since_ms: int
    first: int
    end: int
    until_ms: int = ALWAYS


class Given(Protocol):
    """Rows of windows, as :class:`skerry.windows.results.Result` has them."""

    @property
    def numbers(self) -> Sequence[int] | Int64: ...

    @property
    def ends(self) -> Sequence[int] | Int64: ...

    @property
    def revisions(self) -> Sequence[int] | Int64: ...

    @property
    def motes(self) -> Sequence[int] | Int64: ...

    @property
    def states(self) -> Mapping[tuple[Window, Expr | None], Sequence[list[int]] | Int64]: ...


class WindowRows(Rows):
    """Rows of windows, each sampled in its last epoch, for users' columns and HAVING."""

    def __init__(
        self,
        result: Given,
        groups: Mapping[Expr, Vector],
        texts: Mapping[Expr, list[str]],
        utc_ms: Int64,
    ) -> None:
        """``texts``: what the numbers of a group stand for; ``utc_ms``: of the windows' ends."""
        self._texts = texts
        self.sample_ms: Values = np.array(result.ends, np.int64) - 1
        self.revisions = np.array(result.revisions, np.int64)
        known = np.ones(len(self.revisions), np.bool_)
        facts = {
            REVISION: self.revisions, MOTES: np.array(result.motes, np.int64), TIME: utc_ms, NETWORK_TIME: self.sample_ms + 1,
        }  # fmt: skip
        self.evaluate = Evaluator(
            {**groups, **{expr: (values, known) for expr, values in facts.items()}}, self.sample_ms
        )
        for expr, (ranks, there) in groups.items():
            if expr in texts:
                column = pa.array(texts[expr], pa.string())
                self.evaluate.add_texts(expr, column.take(pa.array(ranks, mask=~there)))
        self._shared = {}
        self._states = {
            (window, argument): np.array(cells, np.int64).reshape(-1, cells_of(argument))
            for (window, argument), cells in result.states.items()
        }

    def prepare(self, aggregates: Iterable[Expr]) -> None:
        """Make sure that they are there."""
        for node in aggregates:
            if not self.evaluate.brings(node):
                self.evaluate.add(node, self._final(node))

    def array(self, output: Output, evaluate: Evaluator, period_ms: int) -> pa.Array:
        """A column, of texts too."""
        if output.expr.kind is not Kind.TEXT:
            return super().array(output, evaluate, period_ms)
        ranks, known = evaluate(output.expr, period_ms)
        return pa.array(self._texts[output.expr], pa.string()).take(pa.array(ranks, mask=~known))

    def _final(self, node: Expr) -> Vector:
        window = window_of(node)
        if not node.args:
            (count,) = self._states[window, None].T
            return count, np.ones(len(count), np.bool_)
        count, total, least, most, *high = self._states[window, node.args[0]].T
        known = count > 0
        if high and node.aggregate in (Aggregate.SUM, Aggregate.AVG):
            return _of_wide(node, count, total, high[0])
        match node.aggregate:
            case Aggregate.COUNT:
                values, known = count, np.ones(len(count), np.bool_)
            case Aggregate.SUM:
                values = total
            case Aggregate.MIN:
                values = least
            case Aggregate.MAX:
                values = most
            case _:
                power = 10 ** (node.digits - node.args[0].digits)
                values = _averages(total, np.maximum(count, 1), power)
        return values, known


def _averages(total: Values, count: Values, power: int) -> Values:
    """``total / count`` in units of 1 / ``power``, rounded half away from zero."""
    if not len(total) or int(np.abs(total).max()) * power < 2**63:
        return rounded_quotients(total * power, count)
    exact = [
        (2 * abs(t) * power + c) // (2 * c) * (-1 if t < 0 else 1)
        for t, c in zip(total.tolist(), count.tolist(), strict=True)
    ]
    return np.array(exact, np.int64)


def _of_wide(node: Expr, count: Values, low: Values, high: Values) -> Vector:
    """SUM or AVG of values of more than 32 bits; a sum beyond what the language reckons with is NULL."""
    totals = [h * 2**32 + lower for h, lower in zip(high.tolist(), low.tolist(), strict=True)]
    known = count > 0
    if node.aggregate is Aggregate.AVG:
        power = 10 ** (node.digits - node.args[0].digits)
        pairs = zip(totals, np.maximum(count, 1).tolist(), strict=True)
        return np.array([rounded_quotient(total * power, times) for total, times in pairs], np.int64), known
    fits = np.array([abs(total) <= SUM_MAXIMUM for total in totals], np.bool_)
    found = [total if there else 0 for total, there in zip(totals, fits.tolist(), strict=True)]
    return np.array(found, np.int64), known & fits


class WindowPart:
    """What one window over one selection of rows gave in a batch, for all who have it."""

    def __init__(self, result: Given, rows: WindowRows, begins: Int64) -> None:
        self._numbers = np.array(result.numbers, np.int64)
        self._ends = np.array(result.ends, np.int64)
        self._rows, self._begins = rows, begins

    def delivery(self, view: WindowView) -> Delivery | None:
        """A user's rows, if any, as he sees them."""
        passing = (self._begins >= view.since_ms) & (self._ends <= view.until_ms)
        passing &= (self._numbers >= view.first) & (self._numbers < view.end)
        plan = view.residual.plan
        if not plan.revises:
            passing &= self._rows.revisions == 0
        if plan.having is not None or plan.order is not None:
            self._rows.prepare(plan.aggregates())
        passing &= self._rows.evaluate.truth(plan.having, plan.period_ms)
        places = np.flatnonzero(passing)
        if plan.order is not None:
            places = self._ordered(places, plan)
        if not len(places):
            return None
        return Delivery(self._numbers[places], view.residual.project(self._rows, places))

    def _ordered(self, places: Int64, plan: QueryPlan) -> Int64:
        """Of each window (that is: each row of the log that brings one, and each end) the first rows, in their order."""
        assert plan.order is not None
        # Groups tell apart what the query's own order does not.
        by = [*plan.order.keys, *((group, False) for group in plan.groups)]
        keys: list[Int64] = [self._numbers[places], self._ends[places]]
        for expr, descending in by:
            values, known = self._rows.evaluate(expr, plan.period_ms)
            values = np.where(known, values, 0)[places]
            keys += [(~known[places]).astype(np.int64), -values if descending else values]
        sequence = np.lexsort(keys[::-1])
        found = places[sequence]
        if plan.order.limit is None:
            return found
        first = np.ones(len(found), np.bool_)
        first[1:] = (np.diff(self._numbers[found]) != 0) | (np.diff(self._ends[found]) != 0)
        begins = np.flatnonzero(first)
        rank = np.arange(len(found)) - np.repeat(begins, np.diff(np.append(begins, len(found))))
        return found[rank < plan.order.limit]


def _epochs(left: Int64, begins: Int64, period_ms: int, epochs: int) -> Int64:
    """The epochs of windows that begin then, by what they leave when divided by ``epochs``."""
    first = begins // period_ms
    return first + (left - first) % epochs


def part_of(
    result: Result,
    course: Course,
    exprs: Sequence[Expr],
    of_rows: Int64,
    utc_ms: Int64,
    period_ms: int,
    texts: Texts | None = None,
) -> WindowPart:
    """What windows gave, of groups of these expressions, of each row a line of ``of_rows``. ``utc_ms``: of their ends."""
    begins = course.begins(result.ends)
    groups: dict[Expr, Vector] = {}
    of_text: dict[Expr, list[str]] = {}
    for values, expr in zip(of_rows.T, exprs, strict=True):
        known = values != NULL
        numbers = np.where(known, values, 0)
        if expr.kind is Kind.TEXT and texts is not None:
            # Ranks stand for texts, so that they can be ordered by.
            of_text[expr] = sorted(texts)
            ranks = np.zeros(len(texts), np.int64)
            ranks[[texts[text] for text in of_text[expr]]] = np.arange(len(texts))
            numbers = ranks[numbers] if len(texts) else numbers
        if expr == EPOCH:
            numbers = _epochs(numbers, begins, period_ms, course.frame.epochs(period_ms))
        groups[expr] = numbers, known
    if groups:
        places = _by_group(result, list(groups.values()))
        result, utc_ms, begins = result.at(places), utc_ms[places], begins[places]
        groups = {expr: (values[places], there[places]) for expr, (values, there) in groups.items()}
    return WindowPart(result, WindowRows(result, groups, of_text, utc_ms), begins)


def _by_group(result: Result, groups: Sequence[Vector]) -> Int64:
    """Places of the rows, those of one window by group: a reader who comes back amid them finds them as they were, whatever had been seen
    before them."""
    windows = np.array([result.numbers, result.ends, result.revisions], np.int64)
    begins = np.any(np.diff(windows, prepend=windows[:, :1]) != 0, axis=0)
    keys: list[Int64] = [np.cumsum(begins)]
    for values, known in groups:
        keys += [(~known).astype(np.int64), values]
    places: Int64 = np.lexsort(keys[::-1])
    return places
