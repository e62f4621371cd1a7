"""A query's plan as SQL over the past: its rows one by one, its groups, and what of them SQL alone does not tell.

All is folded over the integers that motes send, so that what comes out equals what comes of them on their way through the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from skerry.expressions import build
from skerry.expressions.expression import Expr
from skerry.planner.model.epoch_facts import MOTES
from skerry.planner.model.frames import EPOCH
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.row_time import TIME
from skerry.storage.history.engine.expressions import (
    ALONE,
    BIGINT,
    DOUBLE,
    NETWORK_MS,
    OTHERS,
    ROW,
    SESSION,
    WIDE,
    Node,
    Relation,
    Term,
    both,
    cast,
    choose,
    column,
    columns_of,
    floored,
    integer,
    is_null,
    rows_utc_ms,
)
from skerry.storage.history.engine.joins import joined, places_of
from skerry.storage.history.engine.messages import Timing
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import Aggregate

#: Aggregates that are made of sums, least and greatest values.
SIMPLE = (Aggregate.COUNT, Aggregate.SUM, Aggregate.AVG, Aggregate.MIN, Aggregate.MAX)
RANKED = (Aggregate.TOP, Aggregate.BOTTOM)
#: Of an epoch's row: which session it is of, its number, the number of the last row in it, how many rows, and when it began, UTC in ms.
KEYS = ("session", "epoch")
LAST, ROWS, BEGAN = "last", "rows", "began"
#: Of a value: itself, how often it is there, and whose it is.
VALUE, TIMES, MOTE = "value", "times", "mote"
_NODEID = BY_NAME["nodeid"].name
#: Sums of so many rows have room in 64 bits where values lie within what is left.
_ROWS_BITS = 40
_FOLDS: dict[str, type[exp.AggFunc]] = {"count": exp.Count, "min": exp.Min, "max": exp.Max}


def is_extension(node: Expr) -> bool:
    """Whether it is a user's own aggregate."""
    return node.final[:1] == ("extension",)


def is_spread(node: Expr) -> bool:
    """Whether it is made of a sum and a sum of squares."""
    return node.final in (("variance",), ("stddev",))


def is_distinct(node: Expr) -> bool:
    """Whether it counts different values, or says by how much that may be wrong."""
    return node.final[:1] in (("distinct",), ("distinct error",))


def functions_of(node: Expr) -> tuple[str, ...]:
    """What SQL's functions an aggregate is made of."""
    if is_spread(node):
        return "count", "sum", "squares"
    if is_distinct(node):
        return ("distinct",)
    if node.aggregate is Aggregate.AVG:
        return "count", "sum"
    return (node.aggregate.name.lower(),) if node.aggregate in SIMPLE else ()


@dataclass(frozen=True)
class Range:
    """Rows ``start`` .. ``end`` - 1 of the log."""

    start: int
    end: int


def columns_needed(plan: QueryPlan) -> list[str]:
    """The columns of files that a query reads, without those that tell rows apart."""
    return columns_of(sorted(plan.attributes | {BY_NAME[_NODEID].number}))


def rows_select(plan: QueryPlan, part: Range, end: int, timing: Timing) -> exp.Select:
    """Rows of a plan without aggregates, those of one part: their numbers, and each output as ``o0``, ``o1`` …, in no order; of a join
    also what puts the pairs of a row in order."""
    relation = _relation(plan, end, timing, part)
    outputs = [(f"o{i}", relation.number(output.expr)) for i, output in enumerate(plan.outputs)]
    order = [(name, column(name)) for name in (ROW, *places_of(plan))]
    return relation.select([*order, *((name, term.node) for name, term in outputs)])


def ordered_select(plan: QueryPlan, end: int, most: int, timing: Timing) -> exp.Select:
    """Rows of a plan in its own order, at most ``most``; NULL comes last, and what is equal is in the log's order."""
    assert plan.order is not None
    relation = _relation(plan, end, timing)
    outputs = [(f"o{i}", relation.number(output.expr)) for i, output in enumerate(plan.outputs)]
    keys = [(f"k{i}", relation.number(expr)) for i, expr in enumerate(plan.order.exprs())]
    named = [(name, term.node) for name, term in (*outputs, *keys)]
    last = [ROW, *places_of(plan)]
    query = exp.select(*(column(name) for name, _ in outputs)).from_(
        relation.select([*((name, column(name)) for name in last), *named]).subquery("found", copy=False)
    )
    by: list[Node] = []
    for (name, _), (_, descending) in zip(keys, plan.order.keys, strict=True):
        by += [
            exp.Ordered(this=is_null(column(name)), desc=False, nulls_first=False),
            exp.Ordered(this=column(name), desc=descending, nulls_first=False),
        ]
    by += [exp.Ordered(this=column(name), desc=False, nulls_first=False) for name in last]
    return query.order_by(*by).limit(most)


@dataclass
class GroupSelects:
    """The groups of a plan. ``groups``: one row each, with its keys, :data:`LAST`, :data:`ROWS`, :data:`BEGAN` and by ``names`` what has
    been folded of each argument; ``motes``: how many motes there are in each epoch, None: that is not asked for; ``values``: of each
    aggregate that needs them, how often each value is in each group."""

    groups: exp.Select
    names: dict[tuple[Expr, str], str]
    motes: exp.Select | None = None
    values: dict[Expr, exp.Select] = field(default_factory=dict)


def group_names(plan: QueryPlan) -> list[str]:
    """Columns of what is grouped by."""
    return [f"g{i}" for i in range(len(plan.groups))]


def group_selects(plan: QueryPlan, end: int, timing: Timing) -> GroupSelects:
    """Groups of a plan with aggregates, by epoch unless it takes rows as they were recorded."""
    assert plan.history is not None
    names: dict[tuple[Expr, str], str] = {}
    relation, keys = _grouped(plan, end, timing)
    folded: list[tuple[str, Node]] = [
        (LAST, exp.Max(this=column(ROW))),
        (ROWS, exp.Count(this=exp.Star())),
    ]
    if any(node == TIME for expr in plan.exprs() for node in expr.walk()):
        folded.append((BEGAN, exp.Min(this=_began(relation, plan, timing).node)))
    for node in plan.aggregates():
        for function in functions_of(node) if node.args else ():
            key = node.args[0], function
            if key not in names:
                names[key] = f"a{len(names)}"
                folded.append((names[key], _fold(relation, node.args[0], function)))
    found = GroupSelects(_by(relation, keys, folded), names)
    if any(node == MOTES for expr in plan.exprs() for node in expr.walk()):
        relation, keys = _grouped(plan, end, timing)
        motes = exp.Count(this=exp.Distinct(expressions=[column(_NODEID)]))
        found.motes = _by(relation, keys[: len(KEYS)], [("motes", motes)])
    for node in plan.aggregates():
        if node.args and not functions_of(node):
            found.values[node] = _values(plan, end, timing, node)
    return found


def _values(plan: QueryPlan, end: int, timing: Timing, node: Expr) -> exp.Select:
    """How often each value occurs; with its mote where that may count."""
    relation, keys = _grouped(plan, end, timing)
    value = relation.let(relation.number(node.args[0]))
    relation.where(Term(exp.Not(this=exp.paren(is_null(value.node), copy=False)), value.layer))
    keys = [*keys, (VALUE, value.node)]
    if node.aggregate in RANKED or is_extension(node):
        keys.append((MOTE, column(_NODEID)))
    query = _by(relation, keys, [(TIMES, exp.Count(this=exp.Star()))])
    return (
        exp.select("*")
        .from_(query.subquery("found", copy=False))
        .order_by(exp.Ordered(this=column(VALUE), desc=False, nulls_first=False))
    )


def _by(
    relation: Relation, keys: Sequence[tuple[str, Node]], folded: Sequence[tuple[str, Node]]
) -> exp.Select:
    varying = [node.copy() for _, node in keys if not _is_constant(node)]
    query = relation.select([*keys, *folded])
    if varying:
        return query.group_by(*varying, copy=False)
    # Over all rows there is one group, of no rows none.
    return query.having(both(exp.GT, exp.Count(this=exp.Star()), integer(0)), copy=False)


def _is_constant(node: Node) -> bool:
    return node.find(exp.Column) is None


def _grouped(plan: QueryPlan, end: int, timing: Timing) -> tuple[Relation, list[tuple[str, Node]]]:
    """A plan's rows, and what they are grouped by."""
    assert plan.history is not None
    relation = _relation(plan, end, timing)
    session = epoch = integer(0)
    if not plan.history.recorded:
        epoch = floored(_time(relation, timing).node, plan.period_ms)
        session = integer(0) if timing.by_utc else column(SESSION)
    groups = [relation.let(relation.number(expr)).node for expr in plan.groups]
    names = [*KEYS, *group_names(plan)]
    return relation, list(zip(names, [session, epoch, *groups], strict=True))


def _time(relation: Relation, timing: Timing) -> Term:
    """The time by which epochs go, in ms."""
    if not timing.by_utc:
        return Term(column(NETWORK_MS))
    if timing.speed == 1.0:
        return Term(rows_utc_ms())
    speed = exp.Literal.number(f"{timing.speed:.17e}")
    return _whole(relation, both(exp.Mul, cast(rows_utc_ms(), DOUBLE), speed), 0)


def _whole(relation: Relation, node: Node, layer: int) -> Term:
    """A floating-point number as the nearest whole one, of two that are as near the even one: as numpy has it."""
    exact = relation.let(Term(node, layer))
    below = relation.let(Term(cast(exp.Floor(this=exact.node), BIGINT), exact.layer))
    half = both(exp.Sub, exact.node.copy(), cast(below.node, DOUBLE))
    odd = both(exp.NEQ, both(exp.Mod, below.node.copy(), integer(2)), integer(0))
    middle = exp.Literal.number("5e-1")
    up = exp.Or(
        this=both(exp.GT, half, middle),
        expression=exp.And(this=both(exp.EQ, half.copy(), middle.copy()), expression=odd),
    )
    return Term(both(exp.Add, below.node.copy(), choose(up, integer(1), integer(0))), below.layer)


def _began(relation: Relation, plan: QueryPlan, timing: Timing) -> Term:
    """When the epoch of a row began, UTC in ms."""
    time = _time(relation, timing)
    into = both(exp.Mod, time.node, integer(plan.period_ms))
    utc = rows_utc_ms()
    if timing.speed == 1.0:
        return Term(both(exp.Sub, utc, into), time.layer)
    speed = exp.Literal.number(f"{timing.speed:.17e}")
    gone = _whole(relation, both(exp.Div, cast(into, DOUBLE), speed), time.layer)
    return Term(both(exp.Sub, utc, gone.node), gone.layer)


def _fold(relation: Relation, argument: Expr, function: str) -> Node:
    if function in _FOLDS:
        term, finish = relation.folded(argument)
        found = _FOLDS[function](this=relation.let(term).node)
        return found if function == "count" else finish(found)
    term = relation.let(relation.number(argument))
    if function == "distinct":
        return exp.Count(this=exp.Distinct(expressions=[term.node]))
    size = max(abs(argument.low), abs(argument.high))
    value = term.node
    if function == "squares":
        return exp.Sum(this=cast(both(exp.Mul, value, value.copy()), WIDE))
    wide = size.bit_length() + _ROWS_BITS > 63
    return exp.Sum(this=cast(value, WIDE)) if wide else cast(exp.Sum(this=value), BIGINT)


def _relation(plan: QueryPlan, end: int, timing: Timing, part: Range | None = None) -> Relation:
    """Rows that are in a query, all or those of a part: the first in each of its epochs, those that pass its condition; joined with its
    tables."""
    assert plan.history is not None
    relation = Relation(plan.period_ms, None if plan.history.recorded else _first_readings(plan, end))
    if plan.where is not None:
        relation.where(relation.truth(plan.where))
    if part is not None:
        _in_part(relation, part, end)
    return joined(relation, plan, columns_needed(plan), timing.speed) if plan.probes else relation


def _in_part(relation: Relation, part: Range, end: int) -> None:
    """Keep the rows of a part, of those before ``end``."""
    # A bound that no row is beyond would have to be compared with each.
    if part.start > 0:
        relation.where(Term(both(exp.GTE, column(ROW), integer(part.start))))
    if part.end < end:
        relation.where(Term(both(exp.LT, column(ROW), integer(part.end))))


def _first_readings(plan: QueryPlan, end: int) -> exp.Expr:
    """The first reading of each mote in each epoch."""
    found = exp.select("*").from_(exp.to_identifier(OTHERS, quoted=True))
    found = found.where(_first_in_epoch(plan.period_ms, end), copy=False)
    alone = exp.select("*").from_(exp.to_identifier(ALONE, quoted=True))
    return alone.union(found, distinct=False).subquery("readings", copy=False)


def _first_in_epoch(period_ms: int, end: int) -> Node:
    """Whether a mote's row, one of others, is the first in its epoch: that with the earliest sample, of these that with the lowest number.

    Motes sample by the schedule of their query, and rows of the past were sampled by that of others, which came and went: whether a row
    stands where a schedule would have had it says nothing of whether the epoch has another.
    """
    # How far into the epoch, and behind that the row's number, as one number.
    place = 1 << max(end, 1).bit_length()
    into = both(exp.Mod, column(NETWORK_MS), integer(period_ms))
    fits = period_ms * place <= build.INT64_MAXIMUM
    into = into if fits else cast(into, WIDE)
    least = exp.Min(this=both(exp.Add, both(exp.Mul, into, integer(place)), column(ROW)))
    number = cast(both(exp.Mod, least, integer(place)), BIGINT)
    firsts = exp.select(number).from_(exp.to_identifier(OTHERS, quoted=True))
    keys = [column(SESSION), column(_NODEID), floored(column(NETWORK_MS), period_ms)]
    return exp.In(this=column(ROW), query=firsts.group_by(*keys, copy=False).subquery(copy=False))


#: A relation with the numbers of rows that came too late for their windows.
LATE = "late"


@dataclass(frozen=True)
class WindowSelects:
    """The windows of a plan, each of a session's or, by UTC, of all. ``panes``: groups of each pane, ``names`` as of
    :class:`GroupSelects`; ``motes``: who is in each pane, None: that is not asked for."""

    panes: exp.Select
    motes: exp.Select | None
    names: dict[tuple[Expr, str], str]


def window_selects(plan: QueryPlan, end: int, timing: Timing, *, late: bool) -> WindowSelects:
    """The windows of a plan with a frame that is bounded. ``late``: whether there are rows in :data:`LATE`."""
    names: dict[tuple[Expr, str], str] = {}
    relation, keys = _in_panes(plan, end, timing, late=late)
    groups = [*keys]
    for name, expr in zip(group_names(plan), plan.groups, strict=True):
        groups.append((name, _window_group(relation, plan, expr, timing)))
    folded: list[tuple[str, Node]] = [(ROWS, exp.Count(this=exp.Star()))]
    for node in plan.aggregates():
        for function in functions_of(node) if node.args else ():
            key = node.args[0], function
            if key not in names:
                names[key] = f"a{len(names)}"
                folded.append((names[key], _fold(relation, node.args[0], function)))
    panes = _by(relation, groups, folded)
    motes = None
    if any(node == MOTES for expr in plan.exprs() for node in expr.walk()):
        relation, keys = _in_panes(plan, end, timing, late=late)
        motes = _by(relation, [*keys, (MOTE, column(_NODEID))], [(TIMES, exp.Count(this=exp.Star()))])
    return WindowSelects(panes, motes, names)


def _in_panes(
    plan: QueryPlan, end: int, timing: Timing, *, late: bool
) -> tuple[Relation, list[tuple[str, Node]]]:
    """A plan's rows in time, and their sessions and panes."""
    assert plan.window is not None
    relation = _relation(plan, end, timing)
    if late:
        rows = exp.select(column(ROW)).from_(exp.to_identifier(LATE, quoted=True)).subquery(copy=False)
        relation.where(Term(exp.Not(this=exp.paren(exp.In(this=column(ROW), query=rows), copy=False))))
    pane = floored(_time(relation, timing).node, plan.window.width_ms)
    return relation, [("session", _session(timing)), ("pane", pane)]


def _window_group(relation: Relation, plan: QueryPlan, expr: Expr, timing: Timing) -> Node:
    # The epoch that a window has is one of its own time.
    if expr == EPOCH:
        return floored(_time(relation, timing).node, plan.period_ms)
    return relation.let(relation.number(expr)).node


def _session(timing: Timing) -> Node:
    return integer(0) if timing.by_utc else column(SESSION)
