"""What is refused of who asks it now. Queries that were taken before it was go on, also over a restart of the gateway."""

from __future__ import annotations

from skerry.lang import ast
from skerry.lang.errors import QueryError
from skerry.plan.checks import check_acting, has_aggregate
from skerry.plan.model import QueryPlan
from skerry.plan.places import LOC
from skerry.plan.points import Point
from skerry.plan.scope import TIME
from skerry.plan.temporal import is_pulse
from skerry_protocol.bytecode import Op
from skerry_protocol.packets import Aggregate


#: Names of what a query of a storage point has besides its fields.
_RESERVED = {TIME: "the sample time of each stored row", LOC: "a position, xpos and ypos"}


def check_asked(select: ast.Select, plan: QueryPlan) -> None:
    """Raises QueryError for a query that can be planned, and would not do what it says."""
    check_acting(select, plan)
    _check_having(select, plan)
    _check_combined(select)
    _check_lifetime(select)
    _check_pulses(select, plan)
    _check_signal(select, plan)


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
    span = select.items[0].span.to(select.items[-1].span)
    if isinstance(select.sampling, ast.Lifetime):
        hint = "write SAMPLE PERIOD"
        raise QueryError("LIFETIME leaves out epochs that pulses are made of", hint, span)
    if select.event is not None and select.event.aligned:
        hint = "leave ALIGNED out"
        raise QueryError("the epochs of ON ALIGNED EVENT are not those that pulses are made of", hint, span)


def _check_signal(select: ast.Select, plan: QueryPlan) -> None:
    """An event is raised when the mote has gone on to another row of the storage point."""
    for clause in plan.clauses:
        if clause.kind is not Aggregate.SIGNAL or clause.expr is None:
            continue
        if any(node.op is Op.STORED for node in clause.expr.walk()):
            hint = "name attributes of sensors, or none"
            raise QueryError("an event cannot say what a storage point holds", hint, select.signals[0].span)
