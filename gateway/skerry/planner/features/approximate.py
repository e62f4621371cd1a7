"""APPROXIMATE WITHIN: aggregates for which motes may count as siblings whose readings are like their own.

Source: TinyDB 2005, 6.3.2; the firmware side is ``firmware/query/operators/approximate.c``. No reading counts by more than
the tolerance too much or too little: AVG errs by no more than the tolerance, SUM by no more than the tolerance for each mote.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from skerry.expressions import build, extension_aggregates
from skerry.expressions.build import INT32_MAXIMUM
from skerry.expressions.expression import PLAIN, Expr, decimal_text, render
from skerry.planner.model.plans import Column, QueryPlan
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.resolver import Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import units_of
from skerry_protocol.attributes import ValueFormat
from skerry_protocol.codes import Aggregate

#: Of which the paper's idea gives an error that can be stated.
KINDS = (Aggregate.AVG, Aggregate.SUM, Aggregate.COUNT)
#: A mote says something at least each so many epochs (QUERY_APPROXIMATE_EVERY): so long one that is gone is counted on, less one.
EVERY_EPOCHS = 8


def value_of(aggregates: Collection[Expr]) -> Expr | None:
    """What AVG and SUM are of; None: there are counts only."""
    return next((node.args[0] for node in aggregates if node.aggregate is not Aggregate.COUNT), None)


def approximate(draft: Draft) -> Draft:
    """The tolerance that APPROXIMATE WITHIN allows."""
    return draft.planned(within=_within(draft.select, draft.plan))


def _within(select: ast.Select, plan: QueryPlan) -> Expr | None:
    asked = select.approximate
    if asked is None:
        return None
    for refused, what, hint in _refusals(select, plan):
        if refused:
            raise QueryError(f"APPROXIMATE does not go with {what}", hint, asked.span)
    aggregates = plan.aggregates()
    other = next((node for node in aggregates if node.aggregate not in KINDS), None)
    if other is not None:
        hint = "AVG, SUM and COUNT can be: ask for the others in a query without it"
        raise QueryError(
            f"{extension_aggregates.name_of(other.aggregate)} cannot be approximated", hint, asked.span
        )
    value = value_of(aggregates)
    if any(node.aggregate is not Aggregate.COUNT and node.args[0] != value for node in aggregates):
        raise QueryError("APPROXIMATE has one tolerance, for one value", "ask in two queries", asked.span)
    within = Resolver().number(asked.within, "WITHIN")
    digits, unit = (value.digits, value.unit) if value is not None else (0, PLAIN)
    if within.unit not in (PLAIN, unit):
        units = units_of(unit)
        hint = f"write a number in {', '.join(units)}" if units else "write a number without a unit"
        raise QueryError(f"unit mismatch: WITHIN is in {within.unit}", hint, asked.within.span)
    # Rounded down to what a reading can differ by.
    tolerance = (within.operand or 0) * 10**digits // 10**within.digits
    if tolerance > INT32_MAXIMUM:
        raise QueryError(
            "WITHIN is out of range", f"at most {decimal_text(INT32_MAXIMUM, digits)}", asked.within.span
        )
    return build.number(tolerance, 0, unit)


def _refusals(select: ast.Select, plan: QueryPlan) -> tuple[tuple[bool, str, str], ...]:
    return (
        (not plan.aggregate or plan.window is not None, "rows of single motes or of windows",
         "it is for AVG, SUM and COUNT of all motes in each epoch"),
        (bool(plan.groups), "GROUP BY", "it is for AVG, SUM and COUNT of all motes: choose them with WHERE"),
        (bool(plan.reads or plan.probes), "joins", "take FROM sensors, or leave it out"),
        (plan.once, "ONCE", "motes must have heard each other before: write SAMPLE PERIOD, or leave it out"),
        (isinstance(select.sampling, ast.Lifetime), "LIFETIME", "motes then leave out epochs: write SAMPLE PERIOD, or leave it out"),
        (select.event is not None or bool(select.stops), "events", "leave one of them out"),
        (select.history is not None, "HISTORY", "the past is exact: leave it out"),
    )  # fmt: skip


def within_of_all(plans: Sequence[QueryPlan]) -> Expr | None:
    """The smallest tolerance of plans that share a stream; None: it is exact, as some are, or they are of several values.

    An exact stream costs its motes less than two beside each other, and serves those as well who ask for less.
    """
    by_value: dict[Expr | None, list[Expr]] = {}
    for plan in plans:
        if plan.within is None:
            return None
        by_value.setdefault(value_of(plan.aggregates()), []).append(plan.within)
    # Counts do not err, whatever their tolerance.
    counts = by_value.pop(None, [])
    if len(by_value) > 1:
        return None
    [tolerances] = by_value.values() or [counts]
    return min(tolerances, key=lambda within: within.operand or 0)


def representative_column(plans: Sequence[QueryPlan]) -> list[Column]:
    """The last cell of an approximate query's states; []: the query is exact."""
    within = within_of_all(plans)
    return [] if within is None else [Column("", within, ValueFormat.I32, Aggregate.REPRESENTATIVE)]


def describe(plan: QueryPlan) -> list[str]:
    """The errors of a plan's aggregates, in words."""
    if plan.within is None:
        return []
    value = value_of(plan.aggregates())
    digits, unit = (value.digits, value.unit) if value is not None else (0, PLAIN)
    tolerance = f"{decimal_text(plan.within.operand or 0, digits)} {'' if unit == PLAIN else unit}".strip()
    said = {
        Aggregate.AVG: f"by {tolerance} at most",
        Aggregate.SUM: f"by {tolerance} at most for each mote that it counts",
        Aggregate.COUNT: f"not; a mote that is gone counts for up to {EVERY_EPOCHS - 1} epochs",
    }
    return [f"{render(node)} errs {said[node.aggregate]}" for node in plan.aggregates()]
