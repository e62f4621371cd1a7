"""WHERE: the condition on rows, and the part of it that motes can evaluate."""

from __future__ import annotations

from dataclasses import replace

from skerry.expressions import build
from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr, attributes_of, conjuncts
from skerry.planner.model.joined_tables import tables_in
from skerry.planner.semantics.draft import Draft
from skerry.planner.semantics.resolver import Resolver
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate

_EPOCH = BY_NAME["epoch"].number
#: What motes do with rows that pass, which so has to be decided on the mote; no query of another period shares it.
BEFORE_GATEWAY = (Aggregate.ACTION, Aggregate.SIGNAL, Aggregate.QUEUE)


def conditions(draft: Draft) -> Draft:
    """WHERE: a condition on the stream alone, and those that AND joins with it which need a table or the time of the sample."""
    node = draft.select.where
    if node is None:
        return draft
    resolver = Resolver(
        "is not allowed in WHERE, which is asked of each mote before it aggregates",
        scope=draft.scope,
        instead="HAVING chooses by aggregates",
    )
    where = resolver.condition(node, "WHERE")
    parts = conjuncts(where)
    # Without tables the time of the sample is asked at the gateway, as all that motes do not know.
    on = tuple(part for part in parts if tables_in(part)) if draft.scope.tables else ()
    alone = [part for part in parts if part not in on]
    return replace(draft, on=on).planned(where=where if not on else build.join(Op.AND, alone))


def for_motes(draft: Draft) -> Draft:
    """What motes are asked of WHERE: all where they compute of the rows that pass, else what they can evaluate."""
    plan = draft.plan
    whole = plan.aggregate or plan.temporal or draft.scope.sources
    return draft.planned(mote_where=plan.where if whole else _able(plan.where))


def for_acting(draft: Draft) -> Draft:
    """The same where motes do something with the rows that pass."""
    plan = draft.plan
    if plan.mote_where != plan.where and any(clause.kind in BEFORE_GATEWAY for clause in plan.clauses):
        return draft.planned(mote_where=_able(plan.where, epochs=True))
    return draft


def _able(where: Expr | None, *, epochs: bool = False) -> Expr | None:
    """The conjuncts that motes can evaluate, so that rows which fail are not even sent.

    ``epoch`` counts the user's periods; motes may run a shared query at another one, so that conditions
    on it stay at the gateway, unless motes count the same ``epochs``.
    """
    able = [c for c in conjuncts(where) if (epochs or _EPOCH not in attributes_of(c)) and obstacle(c) is None]
    joined = build.join(Op.AND, able)
    while joined is not None and obstacle(joined) is not None:
        able.pop()
        joined = build.join(Op.AND, able)
    return joined
