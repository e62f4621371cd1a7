"""Text → plan: what the user sees, and which part of the condition motes can evaluate."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal

from skerry.lang import ast
from skerry.lang.ast import Span, Stop
from skerry.lang.errors import QueryError
from skerry.lang.parser import parse
from skerry.lang.units import duration_text
from skerry.plan import build
from skerry.plan.assembler import obstacle
from skerry.plan.clauses import clauses_of
from skerry.plan.expression import MIXED, PLAIN, Expr, Kind, attributes_of, conjuncts
from skerry.plan.lifetime import afford
from skerry.plan.merge import merge
from skerry.plan.model import Output, QueryPlan
from skerry.plan.optimiser import chosen
from skerry.plan.program import check_program
from skerry.plan.resolve import Resolver
from skerry.plan.temporal import check_slides, temporal_nodes
from skerry_protocol.attributes import ATTRIBUTES, BY_NAME
from skerry_protocol.bytecode import Op
from skerry_protocol.packets import FIELDS_MAXIMUM, PERIOD_MAXIMUM_MS, PERIOD_MINIMUM_MS, Aggregate

#: Period that a ONCE query is sent with: its single epoch starts at a whole network second.
ONCE_PERIOD_MS = 1000
_EPOCH = BY_NAME["epoch"].number
#: Longest FOR, in ms: network time ends after 2**32 s.
_DURATION_MAXIMUM_MS = 2**31 * 1000


def plan_query(text: str) -> QueryPlan | Stop:
    """The plan of a query, or a STOP QUERY. Raises QueryError for anything wrong with it.

    A plan that is returned fits a mote: its own mote query assembles within all limits.
    """
    statement = parse(text)
    if isinstance(statement, Stop):
        return statement
    try:
        plan = _plan(statement)
        check_program(merge([plan]))
    except QueryError as error:
        raise error.within(text) from None
    except RecursionError:
        raise QueryError("the query is nested too deeply", "use fewer operators").within(text) from None
    return plan


def _plan(select: ast.Select) -> QueryPlan:
    if select.source.name.lower() != "sensors":
        hint = "storage points are not supported by this version: ask FROM sensors"
        raise QueryError(f"unknown table '{select.source.name}'", hint, select.source.span)
    period, duration, once = _sampling(select.sampling)
    where = _where(select.where)
    known = None if isinstance(select.sampling, ast.Lifetime) else period
    outputs = _outputs(select, known)
    groups = _groups(select)
    aggregate = bool(groups) or any(_has_aggregate(output.expr) for output in outputs)
    windows = temporal_nodes(output.expr for output in outputs)
    having = _having(select, aggregate, groups, windows, known)
    if having is not None:
        windows = temporal_nodes([*windows, having])
    exprs = (*(output.expr for output in outputs), where, having, *groups)
    used = frozenset[int]().union(*(attributes_of(expr) for expr in exprs if expr))
    mote_where = where if aggregate or windows else _for_motes(where)
    plan = QueryPlan(
        select.text, period, duration, once, aggregate, outputs, where, mote_where, used, having, groups,
        tuple(windows),
    )  # fmt: skip
    if aggregate:
        _check_aggregates(select, plan)
    if windows:
        _check_windows(select, plan)
    lasts = ONCE_PERIOD_MS if once else duration
    plan = replace(plan, clauses=clauses_of(select, aggregate, lasts))
    if select.event is not None:
        # Its length counts from the event, and its one epoch is the first after it.
        plan = replace(plan, duration_ms=None, once=False)
    if isinstance(select.sampling, ast.Lifetime):
        period, budget = afford(select.sampling, chosen(merge([plan])).energy)
        plan = replace(plan, period_ms=period, budget=budget)
    return plan


def _sampling(sampling: ast.SamplePeriod | ast.Once | ast.Lifetime) -> tuple[int, int | None, bool]:
    """Period and length in ms, and whether it is ONCE; of a lifetime the period is still to be found."""
    if isinstance(sampling, ast.Once):
        return ONCE_PERIOD_MS, None, True
    if isinstance(sampling, ast.Lifetime):
        _check_duration(sampling.duration, PERIOD_MINIMUM_MS, "LIFETIME")
        return (
            PERIOD_MINIMUM_MS,
            _whole(sampling.duration.milliseconds, "LIFETIME", sampling.duration.span),
            False,
        )
    period = sampling.period
    milliseconds = period.milliseconds
    if milliseconds < PERIOD_MINIMUM_MS:
        raise QueryError(
            f"sample period {duration_text(milliseconds)} is below what the network can do",
            f"the shortest is {duration_text(PERIOD_MINIMUM_MS)}",
            period.span,
        )
    if milliseconds > PERIOD_MAXIMUM_MS:
        raise QueryError(
            f"sample period {duration_text(milliseconds)} is above what the network can do",
            f"the longest is {duration_text(PERIOD_MAXIMUM_MS)}",
            period.span,
        )
    whole = _whole(milliseconds, "sample period", period.span)
    if sampling.duration is None:
        return whole, None, False
    duration = sampling.duration
    if isinstance(duration, ast.Rounds):
        if duration.count % 1 or duration.count < 1:
            hint = "without a unit, FOR takes a number of sample periods: a whole one, at least 1"
            raise QueryError(f"FOR {duration.count} is no number of sample periods", hint, duration.span)
        duration = ast.Duration(duration.count * whole, duration.span)
    _check_duration(duration, whole, "FOR")
    return whole, _whole(duration.milliseconds, "FOR", duration.span), False


def _check_duration(duration: ast.Duration, least: int, word: str) -> None:
    if duration.milliseconds < least:
        raise QueryError(
            f"{word} {duration_text(duration.milliseconds)} is shorter than one sample period",
            f"write at least {word} {duration_text(least)}",
            duration.span,
        )
    if duration.milliseconds > _DURATION_MAXIMUM_MS:
        hint = f"leave {word} out, and stop the query with STOP QUERY"
        raise QueryError(f"{word} {duration_text(duration.milliseconds)} is too long", hint, duration.span)


def _whole(milliseconds: Decimal, what: str, span: Span) -> int:
    if milliseconds % 1:
        hint = "write whole milliseconds"
        raise QueryError(f"{what} {duration_text(milliseconds)} is too fine", hint, span)
    return int(milliseconds)


def _where(node: ast.Expression | None) -> Expr | None:
    if node is None:
        return None
    resolver = Resolver("is not allowed in WHERE, which is asked of each mote before it aggregates")
    return resolver.condition(node, "WHERE")


def _groups(select: ast.Select) -> tuple[Expr, ...]:
    """What GROUP BY names: expressions that motes compute, and compare as integers."""
    groups: dict[Expr, None] = {}
    for node in select.groups:
        expr = Resolver("cannot be grouped by: a group is known before it is aggregated").expression(node)
        if reason := obstacle(expr):
            hint = f"groups are told apart by motes, and {reason}"
            raise QueryError("this cannot be grouped by", hint, node.span)
        groups[expr] = None
    return tuple(groups)


def _having(
    select: ast.Select,
    aggregate: bool,
    groups: Collection[Expr],
    windows: Collection[Expr],
    period_ms: int | None,
) -> Expr | None:
    """The condition on an aggregate's rows."""
    if select.having is None:
        return None
    if not aggregate and not windows:
        hint = "it chooses among the rows of an aggregate: choose among motes' rows with WHERE"
        raise QueryError("HAVING has no meaning without an aggregate or GROUP BY", hint, select.having.span)
    having = Resolver(period_ms=period_ms).condition(select.having, "HAVING")
    if aggregate and _has_bare_attribute(having, groups):
        hint = "HAVING speaks of aggregates and of what GROUP BY names: ask of single motes with WHERE"
        raise QueryError(
            "HAVING names an attribute, which has one value for each mote", hint, select.having.span
        )
    return having


def _outputs(select: ast.Select, period_ms: int | None) -> tuple[Output, ...]:
    outputs: list[Output] = []
    for item in select.items:
        if isinstance(item.expression, ast.Star):
            outputs += [_output(entry.name, build.attribute(entry)) for entry in ATTRIBUTES]
            continue
        name = item.alias or select.text[item.expression.span.start : item.expression.span.end]
        outputs.append(
            _output(" ".join(name.split()), Resolver(period_ms=period_ms).expression(item.expression))
        )
    names = [output.name for output in outputs]
    for item in select.items:
        name = item.alias or " ".join(select.text[item.span.start : item.span.end].split())
        if names.count(name) > 1:
            raise QueryError(f"two columns are named '{name}'", "name one of them with AS", item.span)
    return tuple(outputs)


def _output(name: str, expr: Expr) -> Output:
    unit = "" if expr.unit in (PLAIN, MIXED) or expr.kind is not Kind.NUMBER else expr.unit
    return Output(name, expr, unit, expr.digits)


def _has_aggregate(expr: Expr) -> bool:
    return any(Aggregate.NONE < node.aggregate < Aggregate.WINAVG for node in expr.walk())


def _has_bare_attribute(expr: Expr, groups: Collection[Expr]) -> bool:
    """Whether it names an attribute outside of aggregates and of what is grouped by."""
    if expr.aggregate is not Aggregate.NONE or expr in groups:
        return False
    return expr.is_attribute or any(_has_bare_attribute(arg, groups) for arg in expr.args)


def _check_windows(select: ast.Select, plan: QueryPlan) -> None:
    span = select.items[0].span.to(select.items[-1].span)
    if plan.aggregate:
        hint = "ask for them in two queries"
        raise QueryError("windows are over each mote's own rows, and aggregates over all motes", hint, span)
    if plan.once:
        raise QueryError("ONCE gives one row, and windows need several", "write SAMPLE PERIOD", span)
    check_slides(plan.temporal, span)
    for expr in ([plan.where] if plan.where is not None else []) + [node.args[0] for node in plan.temporal]:
        if reason := obstacle(expr):
            hint = f"windows are computed by motes, and {reason}"
            raise QueryError("a mote cannot compute this", hint, span)
    columns = len(merge([plan]).columns)
    if columns > FIELDS_MAXIMUM:
        hint = f"a row has at most {FIELDS_MAXIMUM}"
        raise QueryError(f"{columns} windows and attributes are too many", hint, span)


def _check_aggregates(select: ast.Select, plan: QueryPlan) -> None:
    whom = "each group" if plan.groups else "all"
    for item in select.items:
        star = isinstance(item.expression, ast.Star)
        resolver = Resolver(period_ms=plan.period_ms)
        if isinstance(item.expression, ast.Star) or _has_bare_attribute(
            resolver.expression(item.expression), plan.groups
        ):
            what = "*" if star else f"'{select.text[item.span.start : item.span.end]}'"
            raise QueryError(
                f"{what} has one value for each mote, and an aggregate one for {whom}",
                "name it in GROUP BY, or ask for them in two queries",
                item.span,
            )
    if plan.where is not None and select.where is not None and (reason := obstacle(plan.where)):
        hint = f"aggregates are computed by motes, and {reason}"
        raise QueryError("this condition cannot be evaluated by a mote", hint, select.where.span)
    for node in plan.aggregates():
        if node.args and (reason := obstacle(node.args[0])):
            hint = f"aggregates are computed by motes, and {reason}"
            span = select.items[0].span.to(select.items[-1].span)
            raise QueryError("this aggregate cannot be computed by a mote", hint, span)
    number = plan.cells()
    if number > FIELDS_MAXIMUM:
        hint = f"a partial state has {FIELDS_MAXIMUM}: one for COUNT, SUM, AVG, MIN, MAX and each GROUP BY, more for others"
        span = select.items[0].span.to(select.items[-1].span)
        raise QueryError(f"these aggregates need {number} cells", hint, span)


def _for_motes(where: Expr | None) -> Expr | None:
    """The conjuncts that motes can evaluate, so that rows which fail are not even sent.

    ``epoch`` counts the user's periods; motes may run a shared query at another one, so that conditions
    on it stay at the gateway.
    """
    able = [c for c in conjuncts(where) if _EPOCH not in attributes_of(c) and obstacle(c) is None]
    joined = build.join(Op.AND, able)
    while joined is not None and obstacle(joined) is not None:
        able.pop()
        joined = build.join(Op.AND, able)
    return joined
