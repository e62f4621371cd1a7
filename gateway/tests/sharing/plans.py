"""Plans of users, and what is kept of a network's demand."""

from __future__ import annotations

from typing import Any

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
    """All that is kept of it."""
    return known_of(demand), demand.query_rows(), [demand.user_dict(user) for user in demand.users()]


def known_of(demand: Demand) -> dict[str, Any]:
    """What is read again of what was written."""
    placement = demand.placement
    return {
        **demand.last_ids(),
        "serving": demand.serving_rows(),
        "queries": list(demand.query_rows().values()),
        "served": {user: demand.user_dict(user) for user in demand.users()},
        "sharing_groups": placement.rows(),
        "last_group": placement.last_group,
        "mote_memory": placement.memory,
    }


def kept(demand: Demand) -> Demand:
    """As it is after a restart."""
    return Demand.restored(known_of(demand), demand.users())
