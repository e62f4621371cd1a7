"""Motes' rows joined with each other at motes: what each carries up, what is asked of two of them, and what it is refused for.

Source: Mihaylov et al., Dynamic Join Optimization in Multi-Hop Wireless Sensor Networks (VLDB 2010), section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from skerry.expressions import build
from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr, Kind, conjuncts, render
from skerry.planner.model.pair_groups import S, T
from skerry.planner.model.pairing import (
    AT_ANCESTOR,
    AT_BASE,
    BEHIND,
    BY_HASH,
    HOST,
    NUMBERED,
    WAYS_PERIOD_MS,
    Pairing,
    answered_ms,
    clause_of,
    delay,
    keeps_up,
    keys_of,
    with_pairs,
)
from skerry.planner.model.plans import Column, Output
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.scope_of_motes import attributes_named
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.join_strategies import NAIVE, JoinHints
from skerry.sql.join_windows import is_of_rows, microseconds
from skerry.sql.units import duration_text
from skerry_protocol.attributes import BY_NUMBER, ValueFormat
from skerry_protocol.bytecode import Op, StoredField
from skerry_protocol.limits import FIELDS_MAXIMUM

#: Epochs, or rows, whose numbers go round from 1 to 7, of a mote in a window: more of them is the gateway's.
WINDOW_MAXIMUM, ROWS_MAXIMUM = 8, 7
#: Bytes of a row's values: two of them travel in one frame.
WIDTH_MAXIMUM = 24
#: Attributes of a row besides what it has passed.
CARRIED_MAXIMUM = FIELDS_MAXIMUM - 1
#: Clauses that joined rows of motes have not → what is said of each.
_OTHERS = {
    "groups": "GROUP BY", "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT", "event": "ON EVENT",
    "nested": "OUTPUT ACTION (SELECT …)", "stops": "STOP ON", "into": "INTO", "combine": "COMBINE", "interpolate": "INTERPOLATE",
    "history": "HISTORY", "queue": "QUEUE", "approximate": "APPROXIMATE", "wait": "WAIT", "lateness": "LATENESS", "using": "USING",
    "every": "EVERY", "start_now": "START NOW",
}  # fmt: skip
#: Of these, what the gateway's joins have not either: it is of rows of motes.
_OF_MOTES = frozenset(
    {"event", "nested", "stops", "into", "combine", "interpolate", "queue", "approximate", "start_now"}
)  # fmt: skip
_ELSEWHERE = "leave out where it is joined: the gateway joins with it"
_ALONE = "joined rows are no mote's: leave it out, or ask motes in a query of its own"


def joins(draft: Draft) -> Draft:
    """The plan of a join that motes do. Raises QueryError for what they cannot."""
    select = draft.select
    if select.strategy is None:
        return draft
    if draft.aggregated or draft.plan.temporal or draft.windowed:
        raise QueryError("aggregates are not for rows that motes join", _ELSEWHERE, draft.span)
    rows, epochs = _window(select, draft.plan.period_ms)
    known = [entry.number for entry in attributes_named(select, draft.scope.statics).values()]
    parts = conjuncts(draft.plan.where)
    statics = tuple(part for part in parts if _is_static(part, known))
    between = sum(len(_sides(part)) == 2 for part in statics)
    if not statics:
        hint = "add one, as in s.room = t.room or s.nodeid < t.nodeid, or leave out where it is joined: the gateway joins"
        span = select.where.span if select.where is not None else select.strategy.span
        raise QueryError(
            "no condition is of attributes alone that never change, so that any two motes are a pair",
            hint,
            span,
        )
    asked = [part for part in parts if part not in statics]
    own = {side: [part for part in asked if _sides(part) == {side}] for side in (0, 1)}
    both = [part for part in asked if len(_sides(part)) != 1]
    outputs, acts = draft.plan.outputs, draft.plan.clauses
    told = [clause.expr for clause in acts if clause.expr is not None]
    read = [
        (leaf.operand or 0) & 15
        for expr in [*both, *(output.expr for output in outputs), *told]
        for leaf in _leaves(expr)
        if leaf != HOST
    ]
    # Attributes of two names are one.
    carried = tuple(dict.fromkeys(known[field] for field in read if field < len(known)))

    def placed(leaf: Expr) -> Expr:
        field = (leaf.operand or 0) & 15
        if leaf == HOST or field >= len(known):
            return leaf
        return replace(leaf, operand=(leaf.operand or 0) & ~15 | carried.index(known[field]) + 1)

    def sampled(leaf: Expr) -> Expr:
        field = (leaf.operand or 0) & 15
        number = known[field] if field < len(known) else _NODEID
        return build.attribute(BY_NUMBER[number])

    condition = build.join(Op.AND, [_rewritten(part, placed) for part in both])
    passing = {side: build.join(Op.AND, [_rewritten(part, sampled) for part in own[side]]) for side in (0, 1)}
    where = _roles(passing[0], passing[1])
    _check_motes([*both, *own[0], *own[1]], [condition, where], select)
    _check_told(told, select)
    if select.strategy.words == BY_HASH and not keys_of(statics):
        hint = "add one, as in s.room = t.room: where its value leads, rows of both meet; or join elsewhere"
        raise QueryError(
            "no condition says that an attribute which never changes is equal on both motes",
            hint,
            select.strategy.span,
        )
    shown = tuple(replace(output, expr=_rewritten(output.expr, placed)) for output in outputs)
    aliases = (select.tables[0].called, select.tables[1].called)
    hints = select.hints or JoinHints()
    pairing = Pairing(
        aliases, statics, tuple(known), condition, carried, rows, epochs, between, select.strategy.words,
        (hints.s, hints.t, hints.pair), hints.cost, bool(hints.learning),
        int(hints.within.milliseconds) if hints.within is not None else None,
    )  # fmt: skip
    _check_time(pairing, draft.plan.period_ms, hints, select.strategy.span)
    if pairing.width > WIDTH_MAXIMUM:
        raise QueryError(
            f"rows of {pairing.width} bytes are too long to meet",
            f"{WIDTH_MAXIMUM} is the limit: {_ELSEWHERE}",
            draft.span,
        )
    if len(carried) > CARRIED_MAXIMUM:
        raise QueryError(
            f"rows of {len(carried)} attributes are too long to meet",
            f"{CARRIED_MAXIMUM} is the limit: {_ELSEWHERE}",
            draft.span,
        )
    return draft.planned(
        where=where,
        mote_where=where,
        outputs=shown,
        attributes=frozenset(known),
        columns=_columns(shown, carried, draft),
        clauses=with_pairs(
            clause_of(pairing, draft.plan.period_ms),
            [
                replace(one, expr=_rewritten(one.expr, placed)) if one.expr is not None else one
                for one in acts
            ],
        ),
        pairing=pairing,
    )


_NODEID = next(number for number, entry in BY_NUMBER.items() if entry.name == "nodeid")


def allowed(draft: Draft) -> Draft:
    """What a join that motes do is refused for at once. Raises QueryError."""
    select = draft.select
    if select.strategy is None:
        return draft
    for name, said in _OTHERS.items():
        found = getattr(select, name)
        if found:
            first = found[0] if isinstance(found, tuple) else found
            span = first if isinstance(first, ast.Span) else first.span
            hint = _ALONE if name in _OF_MOTES else _ELSEWHERE
            raise QueryError(f"{said} is not for rows that motes join", hint, span)
    _check_acting(select)
    if not isinstance(select.sampling, ast.SamplePeriod):
        raise QueryError(
            "motes join rows of a sample period",
            f"write SAMPLE PERIOD 10 s, or {_ELSEWHERE}",
            select.sampling.span,
        )
    for table in select.tables:
        if table.joined is not None:
            raise QueryError(f"motes have no {table.joined.kind} JOIN", _ELSEWHERE, table.joined.span)
    return draft


def _check_acting(select: ast.Select) -> None:
    """What two rows that match do, the mote does that joins them: where the gateway joins there is none."""
    assert select.strategy is not None
    does = [("OUTPUT ACTION", output.span) for output in select.outputs]
    does += [("SIGNAL", signal.span) for signal in select.signals]
    if not does:
        return
    (said, span), words = does[0], select.strategy.words
    if words in (AT_BASE, NAIVE):
        hint = f"write JOIN {AT_ANCESTOR}, or another place where motes join"
        raise QueryError(f"{said} is for the mote that joins, and with JOIN {words} none does", hint, span)
    if select.hints is not None and select.hints.learning:
        hint = "leave LEARNING ON out"
        raise QueryError(
            f"{said} is for the mote that joins, and LEARNING ON may have the gateway join", hint, span
        )


def _check_told(told: Iterable[Expr], select: ast.Select) -> None:
    """What a command or an event is told is of the two rows."""
    spans = [*(output.span for output in select.outputs), *(signal.span for signal in select.signals)]
    for expr in told:
        span = spans[0]
        if any((leaf.operand or 0) & 15 > StoredField.NUMBER for leaf in _leaves(expr)):
            hint = "tell it attributes of s and t, or none"
            raise QueryError(f"motes do not know {render(expr)}", hint, span)
        if reason := obstacle(expr):
            raise QueryError(f"a mote cannot reckon {render(expr)}", reason, span)


def _check_time(pairing: Pairing, period_ms: int, hints: JoinHints, span: ast.Span) -> None:
    """A sample period in which ways have no cell for each row; DELIVER WITHIN, where rows under way are waited for longer."""
    if not keeps_up(period_ms, pairing.way):
        least = duration_text(WAYS_PERIOD_MS)
        raise QueryError(
            f"a sample period of {duration_text(period_ms)} is too short for JOIN {pairing.strategy}",
            f"ways carry a row each {least}: write SAMPLE PERIOD {least} or longer, or JOIN {AT_ANCESTOR} or {AT_BASE}",
            span,
        )
    needed = answered_ms(period_ms, pairing.way)
    if hints.within is not None and hints.within.milliseconds < needed:
        waits = duration_text(delay(period_ms, pairing.way) * period_ms)
        hint = (
            f"rows under way are waited for {waits}, then answers climb: write at least {duration_text(needed)}, "
            "or a shorter SAMPLE PERIOD"
        )
        raise QueryError(
            f"DELIVER WITHIN {duration_text(hints.within.milliseconds)} is too short for JOIN {pairing.strategy}",
            hint,
            hints.within.span,
        )


def _window(select: ast.Select, period_ms: int) -> tuple[int, int]:
    """Rows, or epochs."""
    assert select.strategy is not None
    if len(select.windows) != 1:
        raise QueryError(
            "a join of motes has one window", "write WINDOW 3 ROWS or WINDOW 30 s", select.strategy.span
        )
    [window] = select.windows
    size = window.size
    if is_of_rows(size):
        if size.value % 1 or not 1 <= size.value <= ROWS_MAXIMUM:
            hint = f"motes hold 1 to {ROWS_MAXIMUM} rows of each other: {_ELSEWHERE}"
            raise QueryError(f"WINDOW {size.value} ROWS is too large for motes", hint, window.span)
        return int(size.value), 0
    epochs = microseconds(size, "WINDOW") // 1000 // period_ms
    if epochs > WINDOW_MAXIMUM:
        hint = f"motes hold rows of {WINDOW_MAXIMUM} sample periods: {_ELSEWHERE}"
        raise QueryError(f"a window of {epochs} sample periods is too large for motes", hint, window.span)
    return 0, epochs


def _leaves(expr: Expr) -> Iterable[Expr]:
    return (node for node in expr.walk() if node.op is Op.STORED)


def _sides(expr: Expr) -> set[int]:
    """Whose rows it reads: 0 of s, 1 of t."""
    return {(leaf.operand or 0) >> 4 for leaf in _leaves(expr)}


def _is_static(expr: Expr, known: Sequence[int]) -> bool:
    """Whether it is decided once for two motes."""
    fields = [(leaf.operand or 0) & 15 for leaf in _leaves(expr)]
    own = {field for field in fields if field != StoredField.NUMBER}
    return bool(fields) and all(field < len(known) and BY_NUMBER[known[field]].constant for field in own)


def _rewritten(expr: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """With other leaves."""
    if expr.op is Op.STORED:
        return leaf(expr)
    return replace(expr, args=tuple(_rewritten(one, leaf) for one in expr.args)) if expr.args else expr


def _roles(s: Expr | None, t: Expr | None) -> Expr | None:
    """Which rows go up: where both sides' own conditions differ, a number that says as what each has passed."""
    if s == t:
        return s
    return build.add(_role(s, S), _role(t, T))


def _role(condition: Expr | None, role: int) -> Expr:
    if condition is None:
        return build.constant_of(role)
    # NULL is false, so that the other side's rows are not lost by it.
    certain = build.logical(Op.AND, condition, build.invert(build.is_null(condition)))
    return build.multiply(replace(certain, kind=Kind.NUMBER), build.constant_of(role))


def _check_motes(parts: Sequence[Expr], whole: Sequence[Expr | None], select: ast.Select) -> None:
    span = select.where.span if select.where is not None else None
    for part in parts:
        if any((leaf.operand or 0) & 15 > StoredField.NUMBER for leaf in _leaves(part)):
            hint = f"compare epochs, as in s.epoch = t.epoch, or {_ELSEWHERE}"
            raise QueryError(f"motes do not know {render(part)}", hint, span)
        if not _leaves_any(part):
            raise QueryError(f"{render(part)} is of neither mote", "name s or t in it", span)
    for condition in whole:
        if condition is not None and (reason := obstacle(condition)):
            raise QueryError("this condition cannot be evaluated by a mote", f"{reason}: {_ELSEWHERE}", span)


def _leaves_any(part: Expr) -> bool:
    return any(True for _ in _leaves(part))


def _columns(outputs: Sequence[Output], carried: Sequence[int], draft: Draft) -> tuple[Column, ...]:
    """What the gateway has of each joined pair: the other mote and how far behind the later row both are, then what is selected."""
    leaves = dict.fromkeys(leaf for output in outputs for leaf in _leaves(output.expr))
    other = next((leaf for leaf in leaves if leaf.operand == 16 | StoredField.NUMBER), None)
    if other is None:
        other = build.stored(16 | StoredField.NUMBER, "t", 0, 0, 0xFFFF, "")
    columns = [
        Column("other", other, ValueFormat.U16),
        *(Column(f"behind{side}", expr, ValueFormat.I32) for side, expr in enumerate(BEHIND)),
        *(Column(f"s{leaf.operand}", leaf, _format(leaf, carried)) for leaf in leaves if leaf != other),
    ]
    if len(columns) > FIELDS_MAXIMUM:
        room = FIELDS_MAXIMUM - NUMBERED - (HOST in leaves)
        hint = f"{room} attributes of both motes are the limit: {_ELSEWHERE}"
        raise QueryError("a joined row has too many attributes", hint, draft.span)
    return tuple(columns)


def _format(leaf: Expr, carried: Sequence[int]) -> ValueFormat:
    field = (leaf.operand or 0) & 15
    if leaf != HOST and 1 <= field <= len(carried):
        return BY_NUMBER[carried[field - 1]].format
    return ValueFormat.U16 if leaf.high <= 0xFFFF else ValueFormat.I32
