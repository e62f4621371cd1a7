"""Queries as the planner makes them, for benchmarks that know that theirs are right."""

from __future__ import annotations

from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.planner import plan_query


def plan_of(sql: str) -> QueryPlan:
    """The plan of a query."""
    plan = plan_query(sql)
    assert isinstance(plan, QueryPlan), f"no query: {sql}"
    return plan


def query_of(sql: str) -> MoteQuery:
    """What the motes do of a query."""
    return merge([plan_of(sql)])
