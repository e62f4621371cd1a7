"""How a query would be served beside others: by which mote query, with whom, what that takes, and what would change for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skerry.planner.cost.energy import decided, decided_lines
from skerry.planner.physical.srt_routes import routed
from skerry.sharing.groups import view_of
from skerry.sharing.needs import Kind
from skerry.sharing.search import watts

if TYPE_CHECKING:
    from skerry.planner.model.plans import MoteQuery, QueryPlan
    from skerry.sharing.demand import Demand
    from skerry.sharing.placement import Proposal

#: Ways in which a plan's rows come about, by what is said of them.
WAYS = {
    "rows": "its rows come as motes send them",
    "network": "motes aggregate on the way to the root",
    "conditions": "motes aggregate on the way to the root, in one program for several conditions",
    "gateway": "motes send rows of all, from which the gateway computes what they would have",
    "windows": "each mote keeps its windows",
}


def way_of(plan: QueryPlan, query: MoteQuery) -> str:
    """Of :data:`WAYS`, the one in which a mote query serves a plan."""
    made = view_of(plan, query) is not None
    if plan.aggregate:
        return "gateway" if not query.aggregate else "conditions" if made else "network"
    if plan.temporal:
        return "gateway" if made else "windows"
    return "rows"


def describe_sharing(plan: QueryPlan, demand: Demand, now: float) -> dict[str, Any]:
    """What would serve a plan that were asked ``now``, network time in s. Powers in W, of a mote. Raises QueryError where nothing can."""
    placement = demand.placement
    proposal = placement.proposed(plan)
    into = placement.into(proposal)
    wanted = routed(placement.query(proposal.target), demand.srts)
    current = demand.current(into.number) if into is not None else None
    unchanged = current is not None and current.mote_query == wanted and proposal.changes_nothing
    served = [other for number in proposal.target.groups for other in placement.groups()[number].plans()]
    if proposal.anew:
        served = [need.plan for need in proposal.target.needs if need != proposal.need]
    begins_ms = demand.would_begin_ms(
        plan, wanted, into.number if unchanged and into is not None else None, now
    )
    return {
        "way": way_of(plan, wanted),
        "shares": current.query if current is not None else None,
        "unchanged": unchanged,
        "own": proposal.need.kind is Kind.OWN and proposal.need.is_unshareable,
        "changes": _changes(proposal, demand),
        "begins_in": None if begins_ms is None else max(0.0, begins_ms / 1000 - now),
        "power": _power(proposal, demand),
        "decision": decided(wanted, [*served, plan]),
    }


def _changes(proposal: Proposal, demand: Demand) -> list[dict[str, Any]]:
    """The mote queries that others would take the place of: their users, and how these are served then."""
    placement = demand.placement
    found = []
    for group, each in placement.affected(proposal):
        running = demand.current(group.number)
        query = placement.query(each)
        if running is not None and query != group.query():
            ways = sorted({way_of(need.plan, query) for need in group.needs})
            found.append(
                {
                    "query": running.query,
                    "users": len(group.users),
                    "ways": ways,
                    "period_ms": query.period_ms,
                }
            )
    return found


def _power(proposal: Proposal, demand: Demand) -> dict[str, float]:
    """What all mote queries take of a mote, now and then."""
    placement = demand.placement
    groups = {group.number: watts(group.query(), placement.depth) for group in placement.groups().values()}
    gone = {group.number for group, _ in placement.affected(proposal)}
    then = sum(power for number, power in groups.items() if number not in gone)
    then += sum(watts(placement.query(each), placement.depth) for each in proposal.bins)
    return {"now": sum(groups.values()), "then": then}


def sharing_lines(stream: dict[str, Any] | None) -> list[str]:
    """The same for people."""
    if stream is None:
        return []
    lines = ["stream", f"  {WAYS[stream['way']]}"]
    decision, power = stream["decision"], stream["power"]
    if stream["shares"] is None:
        until = "" if stream["own"] else ", until others join"
        lines.append(f"  a mote query of its own{until}")
    else:
        how = "as it runs" if stream["unchanged"] else "which is replaced by one that serves all its users"
        where = f" where {decision['where']}" if decision["where"] else ""
        lines.append(f"  shares mote query {stream['shares']}, {how}")
        lines.append(f"  it samples {', '.join(decision['attributes']) or 'nothing'}{where}")
    for change in stream["changes"]:
        if change["query"] != stream["shares"]:
            told = " or ".join(WAYS[way] for way in change["ways"])
            lines.append(
                f"  mote query {change['query']} of {_users(change['users'])} is replaced: then {told}"
            )
    if stream["begins_in"] is not None:
        lines.append(f"  begins in {stream['begins_in']:.0f} s")
    lines += decided_lines(decision)
    lines.append(
        f"  all mote queries take {power['now'] * 1e6:.1f} µW of a mote now, {power['then'] * 1e6:.1f} µW with it"
    )
    return lines


def _users(count: int) -> str:
    return "1 user" if count == 1 else f"{count} users"
