"""What is refused of who asks it now. Queries that were taken before it was go on, also over a restart of the gateway."""

from __future__ import annotations

from skerry.catalog.actions import find_or_none
from skerry.expressions.expression import Kind, depth_of, render
from skerry.expressions.temporal import is_pulse
from skerry.planner.features.events_and_actions import check_acting, in_every_event
from skerry.planner.model.plans import QueryPlan
from skerry.planner.model.row_time import NETWORK_TIME_NAME, TIME_NAME
from skerry.planner.model.storage_points import Point
from skerry.planner.physical.fast_sampling import check_all_speed
from skerry.planner.semantics.aggregates import has_aggregate
from skerry.planner.semantics.positions import LOC
from skerry.planner.semantics.resolver import Resolver
from skerry.planner.semantics.scope import Scope
from skerry.planner.semantics.temporal_aggregates import NAMES, is_time
from skerry.planner.semantics.unit_checks import check_units
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate

#: Operators within each other: the gateway walks through them wherever a query is evaluated, kept and explained.
DEPTH_MAXIMUM = 100
#: The same of what is made of them: adding up values of different digits, say, takes two.
_NODES_MAXIMUM = 200
#: Names of what a query of a storage point has besides its fields.
_RESERVED = {
    TIME_NAME: "the sample time of each stored row",
    NETWORK_TIME_NAME: "the same in network time",
    LOC: "a position, xpos and ypos",
}


def check_answerable(select: ast.Select, plan: QueryPlan, scope: Scope, *, stored: bool) -> None:
    """Raises QueryError for a query that can be planned, and would not do what it says. ``stored``: its rows wait on the motes."""
    _check_depth(select, plan)
    _check_items(select, plan)
    _check_words(select)
    _check_bins(select, scope)
    _check_lengths(select, plan)
    check_acting(select, plan)
    _check_groups(select)
    _check_order(select)
    _check_having(select, plan)
    _check_combined(select)
    _check_lifetime(select)
    _check_pulses(select, plan)
    _check_signal(select, plan, scope)
    _check_switched(select, scope)
    _check_arguments(select)
    check_all_speed(select, plan, stored=stored)


def check_filling(filling: ast.Select) -> None:
    """The same of a storage point's AS SELECT."""
    if filling.history is not None:
        hint = "motes keep what they sample, not what the gateway has"
        raise QueryError("HISTORY does not go with storage points", hint, filling.history.span)
    if filling.buffers:
        hint = "its rows go to the point that is created: leave BUFFER out"
        raise QueryError("rows cannot go to two storage points", hint, filling.buffers[0])


def check_fields(statement: ast.CreatePoint, point: Point) -> None:
    """The fields of a storage point can be named: what each row has anyway, or stands for two columns, would hide them."""
    declared = {name.name.lower(): name.span for name, _ in statement.fields}
    for field in point.fields:
        name = field.name.lower()
        if name in _RESERVED:
            message = f"a field cannot be called '{field.name}', which is {_RESERVED[name]}"
            raise QueryError(
                message, f"name it otherwise, as in {name}_read", declared.get(name, statement.name.span)
            )


def _check_depth(select: ast.Select, plan: QueryPlan) -> None:
    parts = (*select.items, select.where, *select.groups, select.having, *select.order)
    deepest = max(map(ast.depth, parts))
    if deepest > DEPTH_MAXIMUM:
        summary = f"the query is nested too deeply: {deepest} operators stand within each other"
        raise QueryError(summary, f"at most {DEPTH_MAXIMUM} may: ask for parts of it in columns of their own")
    exprs = [*(output.expr for output in plan.outputs), *plan.groups, plan.where, plan.having]
    exprs += plan.order.exprs() if plan.order is not None else []
    exprs += [clause.expr for clause in plan.clauses]
    if any(depth_of(expr) > _NODES_MAXIMUM for expr in exprs if expr is not None):
        raise QueryError("the query is nested too deeply", "use fewer operators")


def _check_items(select: ast.Select, plan: QueryPlan) -> None:
    """Columns can be told apart, and computed."""
    stars = [item.expression for item in select.items if isinstance(item.expression, ast.Star)]
    for place, star in enumerate(stars[1:], 1):
        if any(None in (star.table, other.table) or _alike(star, other) for other in stars[:place]):
            raise QueryError("* is said twice", "leave one of them out", star.span)
    exprs = [output.expr for output in plan.outputs] + ([plan.having] if plan.having is not None else [])
    for node in (node for expr in exprs for node in expr.walk()):
        if node.op is Op.IS_NULL and node.args[0].kind is Kind.LIST:
            hint = "a list without values is empty: ask for it as a column of its own"
            raise QueryError(f"{render(node.args[0])} is a list, and never NULL", hint, _span_of(select))


def _alike(one: ast.Star, other: ast.Star) -> bool:
    return (one.table or "").lower() == (other.table or "").lower()


def _span_of(select: ast.Select) -> ast.Span:
    return select.items[0].span.to(select.items[-1].span)


def _check_words(select: ast.Select) -> None:
    """No word stands where it means nothing."""
    for node in ast.walk(select):
        if isinstance(node, ast.Call) and node.function.lower() == "dist" and node.distinct:
            raise QueryError("dist(DISTINCT …) has no meaning", "write dist(loc, event.loc)", node.span)
        named = (
            node.name
            if isinstance(node, ast.Signal)
            else node.event
            if isinstance(node, ast.StopOn)
            else None
        )
        if named is not None and named.name.lower() == "every":
            hint = "name the event otherwise: ON EVENT every(10 min) waits for none"
            raise QueryError(f"'{named.name}' is a timer, not an event", hint, named.span)
        if isinstance(node, ast.Binary) and node.operator == ">>":
            by = node.right
            if isinstance(by, ast.Number) and by.unit is not None:
                hint = f"write {by.value:f} without a unit"
                raise QueryError(f">> is by a number of places, not of {by.unit}", hint, by.span)


def _check_lengths(select: ast.Select, plan: QueryPlan) -> None:
    """A window's length and slide are both times or both rows, and one over all motes ends before the query does."""
    for call in (node for node in ast.walk(select) if isinstance(node, ast.Call)):
        lengths = [argument for argument in call.arguments if isinstance(argument, ast.Number)]
        if call.function.upper() in NAMES and len(set(map(is_time, lengths))) > 1:
            summary = f"{call.function.upper()}'s length and slide are a time and a number of rows"
            raise QueryError(summary, "write both as times, or neither", lengths[0].span.to(lengths[-1].span))
    if plan.window is not None and plan.duration_ms is not None and plan.duration_ms < plan.window.slide_ms:
        each, lasts = duration_text(plan.window.slide_ms), duration_text(plan.duration_ms)
        hint = f"write a longer FOR than {each}, or a shorter window"
        raise QueryError(f"a window that ends each {each} has no row in {lasts}", hint, _span_of(select))


def _check_bins(select: ast.Select, scope: Scope) -> None:
    """The ends of a histogram are in the unit of what it is of."""
    for call in (node for node in ast.walk(select) if isinstance(node, ast.Call)):
        if call.function.upper() == "HISTOGRAM":
            resolved = [(Resolver(scope=scope).expression(argument), argument) for argument in call.arguments]
            ((of, named),) = [pair for pair in resolved if not pair[0].is_constant] or resolved[:1]
            for constant, written in resolved:
                check_units(of, constant, named, written, strict=True)


def _check_groups(select: ast.Select) -> None:
    """A number is no column's place, as it is in ORDER BY, and everything would be one group."""
    for node in select.groups:
        if _is_same_everywhere(node):
            written = select.text[node.span.start : node.span.end]
            raise QueryError(
                f"GROUP BY {written} makes one group of all",
                "name what is grouped by, as in GROUP BY room",
                node.span,
            )


def _check_order(select: ast.Select) -> None:
    """Rows are ordered by what differs among them; a number alone is a column's place."""
    for node in (part.expression for part in select.order):
        if _is_same_everywhere(node) and not isinstance(node, ast.Number):
            written = select.text[node.span.start : node.span.end]
            hint = "write a column or its number, the greatest first with DESC, as in ORDER BY 2 DESC"
            raise QueryError(f"ORDER BY {written} is the same for all rows", hint, node.span)


def _is_same_everywhere(node: ast.Expression) -> bool:
    return not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node))


def _check_having(select: ast.Select, plan: QueryPlan) -> None:
    """Beside windows of each mote there is nothing over all motes to choose by."""
    if plan.temporal and select.having is not None and plan.having is not None and has_aggregate(plan.having):
        summary = "windows are over each mote's own rows, and aggregates over all motes"
        raise QueryError(summary, "ask for them in two queries", select.having.span)


def _check_combined(select: ast.Select) -> None:
    """COMBINE is over the last sample period, as motes count it: a second for one epoch, and for the grid of ALIGNED."""
    if not select.combine:
        return
    span = select.combine[0].span
    if isinstance(select.sampling, ast.Once):
        hint = "write SAMPLE PERIOD, or leave COMBINE out and have all rows"
        raise QueryError("COMBINE does not go with ONCE, which has no last period", hint, span)
    if isinstance(select.sampling, ast.Lifetime):
        hint = "motes leave out epochs, and the rows between would be in none: write SAMPLE PERIOD"
        raise QueryError("COMBINE does not go with LIFETIME", hint, span)
    if select.event is not None and select.event.aligned:
        raise QueryError("COMBINE does not go with ALIGNED", "leave one of them out", span)


def _check_lifetime(select: ast.Select) -> None:
    """Motes spread what is in their batteries over the time until the query's end, and one that waits for events has none."""
    if select.event is not None and isinstance(select.sampling, ast.Lifetime):
        raise QueryError(
            "LIFETIME does not go with events", "write SAMPLE PERIOD n FOR n", select.sampling.span
        )


def _check_pulses(select: ast.Select, plan: QueryPlan) -> None:
    """Pulses are of epochs that follow each other, and are counted by."""
    if not any(map(is_pulse, plan.temporal)):
        return
    span = _span_of(select)
    if isinstance(select.sampling, ast.Lifetime):
        hint = "write SAMPLE PERIOD"
        raise QueryError("LIFETIME leaves out epochs that pulses are made of", hint, span)
    if select.event is not None and select.event.aligned:
        hint = "leave ALIGNED out"
        raise QueryError("the epochs of ON ALIGNED EVENT are not those that pulses are made of", hint, span)


def _check_signal(select: ast.Select, plan: QueryPlan, scope: Scope) -> None:
    """An event is raised when the mote has gone on to another row of the storage point. Of two rows that match it is told at once."""
    if plan.pairing is not None:
        return _check_joins_signal(select)
    exprs = [clause.expr for clause in plan.clauses if clause.kind is Aggregate.SIGNAL]
    stored = any(node.op is Op.STORED for expr in exprs if expr is not None for node in expr.walk())
    for signal in select.signals:
        # What each event says anyway is the mote's, whatever table is named.
        if stored or not all(_of_mote(p, scope) for p in signal.parameters if in_every_event(p)):
            hint = "name attributes of sensors, or none"
            raise QueryError("an event cannot say what a storage point holds", hint, signal.span)


def _check_joins_signal(select: ast.Select) -> None:
    """What each event says anyway is of the mote that raises it, which is neither s nor t."""
    for signal in select.signals:
        for parameter in filter(in_every_event, signal.parameters):
            hint = "leave it out: an event names the mote that raises it, here the one that joins"
            raise QueryError("this is in every event, and is not of s or t there", hint, parameter.span)


def _check_switched(select: ast.Select, scope: Scope) -> None:
    """``power_on(nodeid)`` switches the mote whose row it is, and no other can be named."""
    for output in select.outputs:
        command = find_or_none(output.name.name)
        if command is None or command.low is not None or output.argument is None:
            continue
        if not _of_mote(output.argument, scope):
            whose = "that joins" if select.strategy is not None else "whose row it is"
            hint = f"write {command.name}: it acts on the mote {whose}"
            raise QueryError(f"{command.name} cannot be sent to another mote", hint, output.argument.span)


def _check_arguments(select: ast.Select) -> None:
    """What no command can be told: a number of something, or NULL."""
    for output in select.outputs:
        command = find_or_none(output.name.name)
        if command is None or output.argument is None:
            continue
        nodes = list(ast.walk(output.argument))
        if isinstance(output.argument, ast.Null):
            raise QueryError(
                f"{command.name} cannot be told NULL", f"it is {command.takes}", output.argument.span
            )
        if not any(isinstance(node, ast.Name) for node in nodes):
            for number in (node for node in nodes if isinstance(node, ast.Number) and node.unit is not None):
                hint = f"leave {number.unit} out: it is {command.takes}"
                raise QueryError(f"{command.name} takes a number without a unit", hint, number.span)


def _of_mote(node: ast.Expression, scope: Scope) -> bool:
    """Whether a name is without a table, or with that of the mote's own readings."""
    table = node.table if isinstance(node, ast.Name) else None
    return table is None or table.lower() in ("sensors", scope.sensors)
