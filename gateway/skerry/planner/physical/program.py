"""Mote query → the program that is sent."""

from __future__ import annotations

from skerry.expressions.assembler import assemble
from skerry.expressions.expression import Expr
from skerry.expressions.temporal import is_temporal, parameters
from skerry.planner.model.pairing import carried_columns, pairs_clause
from skerry.planner.model.plans import Column, MoteQuery
from skerry.planner.physical.condition_order import SamplingPlan, considered
from skerry.sql.errors import QueryError
from skerry_protocol.codec import encode_program
from skerry_protocol.codes import Aggregate, QueryFlag
from skerry_protocol.limits import FIELDS_MAXIMUM, FOREVER, PROGRAM_MAXIMUM

#: Bytes of a program besides code: flags, period, start, end, length of the condition.
_HEADER = 1 + 4 + 4 + 4 + 1
#: Bytes of a field besides code: format, aggregate, length.
_FIELD = 3


def _code(expr: Expr | None) -> bytes:
    if expr is None:
        return b""
    if is_temporal(expr):
        return parameters(expr).encode() + assemble(expr.args[0])
    return assemble(expr)


def _conditions(query: MoteQuery, plan: SamplingPlan) -> list[bytes]:
    """What a plan asks one after the other, or at once."""
    return list(map(assemble, plan.conditions)) if plan.staged else [_code(query.where)]


def _where(query: MoteQuery, plan: SamplingPlan) -> bytes:
    conditions = _conditions(query, plan)
    return b"".join(bytes([len(code)]) * plan.staged + code for code in conditions)


def _format(column: Column) -> int:
    cells = Aggregate.TOP <= column.aggregate < Aggregate.WINAVG
    return column.cells if cells else column.format.code


def _fields(query: MoteQuery) -> list[Column]:
    """The columns of motes' rows, which of a join of these are not yet those that the gateway gets."""
    pairs = pairs_clause(query)
    columns = query.columns if pairs is None else carried_columns(pairs, query.where)
    return [column for column in columns if column.is_field]


def chosen(query: MoteQuery) -> SamplingPlan:
    """The plan that the mote query's program carries: the cheapest that fits."""
    plans = considered(query)
    return next((plan for plan in plans if program_size(query, plan) <= PROGRAM_MAXIMUM), plans[0])


def program_size(query: MoteQuery, plan: SamplingPlan | None = None) -> int:
    """Bytes of the program with this plan of sampling, or the one that is chosen."""
    plan = plan or chosen(query)
    fields = sum(_FIELD + len(_code(column.expr)) for column in _fields(query))
    budget = _FIELD + len(query.budget.encode()) if query.budget else 0
    clauses = sum(_FIELD + len(clause.encode()["code"]) for clause in query.clauses)
    where = sum(plan.staged + len(code) for code in _conditions(query, plan))
    return _HEADER + where + fields + budget + clauses


def fits(query: MoteQuery) -> bool:
    """Whether a mote takes the program."""
    return len(query.columns) <= FIELDS_MAXIMUM and program_size(query) <= PROGRAM_MAXIMUM


def check_program(query: MoteQuery) -> None:
    """Raises QueryError when a mote would refuse the program for its size."""
    size = program_size(query)
    if not fits(query):
        raise QueryError(
            f"query too large for a mote: {size} bytes, limit {PROGRAM_MAXIMUM}; "
            f"{len(query.columns)} columns, limit {FIELDS_MAXIMUM}",
            "shorten the condition or ask for less at once",
        )


def encode(query: MoteQuery, start: int, end: int = FOREVER, plan: SamplingPlan | None = None) -> bytes:
    """Program bytes. ``start`` and ``end``: network seconds; ``plan``: of those considered, None: the one that is chosen."""
    plan = plan or chosen(query)
    flags = (QueryFlag.AGGREGATE if query.aggregate else 0) | (QueryFlag.ONCE if query.once else 0)
    flags |= QueryFlag.STAGED if plan.staged else 0
    flags |= QueryFlag.SNOOP if query.snoop else 0
    fields = [
        {"format": _format(column), "aggregate": int(column.aggregate), "code": _code(column.expr)}
        for column in _fields(query)
    ]
    if query.budget:
        fields.append({"format": 0, "aggregate": int(Aggregate.BUDGET), "code": query.budget.encode()})
    fields += [clause.encode() for clause in query.clauses]
    return encode_program(
        flags=flags,
        period=query.period_ms,
        start=start,
        end=end,
        where=_where(query, plan),
        fields=fields,
    )
