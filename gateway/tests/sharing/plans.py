"""Plans of users, and what is kept of a network's demand."""

from __future__ import annotations

import json

from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.sharing.demand import Demand


def plan(text: str) -> QueryPlan:
    result = plan_query(text)
    assert isinstance(result, QueryPlan)
    return result


def rows(what: str, period: str = "10 s", where: str = "", length: str = "") -> QueryPlan:
    clause = f"WHERE {where}" if where else ""
    return plan(f"SELECT {what} FROM sensors {clause} SAMPLE PERIOD {period} {length}")


def state_of(demand: Demand) -> tuple[object, ...]:
    return demand.to_dict(), demand.query_texts(), [demand.user_text(user) for user in demand.users()]


def kept(demand: Demand) -> Demand:
    """What is read again of what was written."""
    users = {user: json.loads(demand.user_text(user) or "") for user in demand.users()}
    queries = [json.loads(text or "") for text in demand.query_texts().values()]
    return Demand.from_dict(json.loads(json.dumps(demand.to_dict())), queries, users, demand.users())
