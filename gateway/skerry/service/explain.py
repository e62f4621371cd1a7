"""What a query would do: what runs on motes, at the root and at the gateway, and what it costs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from skerry.expressions import extension_aggregates
from skerry.expressions.assembler import obstacle
from skerry.expressions.expression import Expr, attributes_of, conjuncts, render
from skerry.expressions.ranges import doubt
from skerry.planner.cost.energy import record_bytes, stays
from skerry.planner.cost.event_batching import batching, events_of
from skerry.planner.cost.lifetime import power_for, predicted_ms
from skerry.planner.cost.radio import record_energy, record_seconds
from skerry.planner.features import approximate
from skerry.planner.features.queueing import describe, held_ms
from skerry.planner.model.clause import aligned_ms, own_event
from skerry.planner.model.columns import IN_EVERY_ROW
from skerry.planner.model.lifetime_budget import CAPACITY
from skerry.planner.model.pairing import carried_columns, pairs_clause
from skerry.planner.model.plans import MoteQuery, QueryPlan
from skerry.planner.model.waits import WAIT_MS
from skerry.planner.physical.condition_order import SamplingPlan, considered
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import chosen, program_size
from skerry.planner.physical.srt_routes import best_route, routed
from skerry.service.explain_route import describe_route, route_lines
from skerry.service.explain_sharing import describe_sharing, sharing_lines
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text
from skerry_protocol.attributes import BY_NAME, BY_NUMBER
from skerry_protocol.codes import Aggregate
from skerry_protocol.commands import event_number
from skerry_protocol.limits import FIELDS_MAXIMUM, PROGRAM_MAXIMUM

if TYPE_CHECKING:
    from skerry.catalog.catalog import Catalog
    from skerry.sharing.demand import Demand

#: Of the orders of sampling that were considered, those that are shown: the best.
PLANS_SHOWN = 6


_SNOOP_LINES = [
    "  with five or more neighbours of their level: listen to some of them first, and send nothing where theirs",
    "  makes it superfluous",
]
_APPROXIMATE_LINES = [
    "  with five or more neighbours of their level: be silent in up to seven epochs of eight while a neighbour's reading is as near,",
    "  and count as that one",
]


def explain(
    plan: QueryPlan, catalog: Catalog | None = None, demand: Demand | None = None, now: float = 0.0
) -> dict[str, Any]:
    """The plan as plain values. Energies in J, times in s, periods in ms.

    With a catalog it also says which attributes some motes lack, and reckons with the events that have come; with a
    demand it says how the query would be served if it were asked ``now``, network time in s.
    """
    srts = demand.srts if demand is not None else ()
    query = routed(merge([plan]), srts)
    route = best_route(merge([plan]), srts)
    events = batching(query, _rates(query, catalog), record_energy(record_bytes(query)))
    result: dict[str, Any] = {
        "query": plan.text,
        "period_ms": aligned_ms(plan.clauses) or plan.period_ms,
        "duration_ms": plan.duration_ms,
        "once": plan.once,
        "lifetime": _lifetime(plan),
        "columns": [
            {"name": o.name, "type": o.type, "unit": o.unit, "digits": o.digits} for o in plan.outputs
        ],
        "motes": _named(_motes(query), plan) | {"errors": approximate.describe(plan)},
        "events": events.to_dict() if events is not None else None,
        "root": _root(query),
        "gateway": _gateway(plan, query),
        "joins": [
            {"table": probe.table.schema.name, "past_ms": probe.table.past_ms, "where": str(probe)}
            for probe in plan.probes
        ],
        "stream": None,
        "route": describe_route(route, catalog) if route is not None else None,
        "lacking": {},
        "doubt": doubt(plan.where),
        "notes": list(plan.notes),
        # Why it could not be asked now; None: it could.
        "refused": None,
    }
    if demand is not None:
        try:
            result["stream"] = describe_sharing(plan, demand, now)
        except QueryError as error:
            result["refused"] = str(error)
    if catalog is not None:
        made = {entry.number: entry.name for entry in plan.statics.values()}
        names = [made.get(number, BY_NUMBER[number].name) for number in sorted(plan.attributes)]
        result["lacking"] = {name: motes for name in names if (motes := catalog.lacking(name))}
    return result


def _rates(query: MoteQuery, catalog: Catalog | None) -> dict[str, float]:
    """Of the events that a query waits for, those whose rate is known, per s."""
    names = {clause.name for clause in events_of(query.clauses)}
    if catalog is None:
        return {}
    known = {name: catalog.events.rate(event_number(name), time.time()) for name in sorted(names)}
    return {name: rate / catalog.speed for name, rate in known.items() if rate is not None}


def _lifetime(plan: QueryPlan) -> dict[str, Any] | None:
    """What LIFETIME came to, for fresh batteries. Powers in W, times in ms."""
    if plan.budget is None or plan.duration_ms is None:
        return None
    return {
        "capacity": CAPACITY,
        "power": power_for(plan.duration_ms) / 1e6,
        "idle_power": plan.budget.idle / 1e6,
        "energy_per_epoch": plan.budget.energy / 1e9,
        "predicted_ms": predicted_ms(plan.period_ms, plan.budget.energy),
        "slowest_period_ms": plan.period_ms * plan.budget.most,
    }


def _named(motes: dict[str, Any], plan: QueryPlan) -> dict[str, Any]:
    """The same with the names that users have given to attributes."""
    names = {BY_NUMBER[entry.number].name: entry.name for entry in plan.statics.values()}
    motes["columns"] = [names.get(column, column) for column in motes["columns"]]
    for attribute in motes["attributes"]:
        attribute["name"] = names.get(attribute["name"], attribute["name"])
    return motes


def _motes(query: MoteQuery) -> dict[str, Any]:
    pairs = pairs_clause(query)
    own = query.columns if pairs is None else carried_columns(pairs, query.where)
    read = [
        *(column.expr for column in own),
        *(clause.expr for clause in query.clauses),
        query.where,
    ]
    exprs = [expr for expr in read if expr is not None]
    sampled = [BY_NUMBER[n] for n in sorted(frozenset[int]().union(*map(attributes_of, exprs)))]
    size = record_bytes(query)
    return {
        "where": render(query.where) if query.where else None,
        "snoop": query.snoop,
        "at_once": query.at_once,
        # That of each mote's own with which it has a row, in place of a period.
        "event": own_event(query.clauses),
        "stored": stays(query),
        "clauses": [
            describe(clause, query.period_ms) if clause.kind is Aggregate.QUEUE else str(clause)
            for clause in query.clauses
        ],
        "columns": [
            _column(c.expr, extension_aggregates.name_of(c.aggregate) if query.aggregate else "")
            for c in query.columns
            if c.is_field and c.aggregate is not Aggregate.REPRESENTATIVE
        ],
        "attributes": [
            {"name": a.name, "energy": a.energy, "sample_time": a.sample_ms / 1000} for a in sampled
        ],
        "energy_per_epoch": chosen(query).energy,
        "sampling": [plan.to_dict() for plan in _shown(query)],
        "program_bytes": program_size(query),
        "program_limit": PROGRAM_MAXIMUM,
        "columns_limit": FIELDS_MAXIMUM,
        "record_bytes": size,
        "air_time_per_hop": record_seconds(size),
        "radio_energy_per_hop": record_energy(size),
    }


def _shown(query: MoteQuery) -> list[SamplingPlan]:
    """The chosen plan, then the best of the others, and the best of each kind."""
    first, plans = chosen(query), considered(query)
    kinds = {(plan.staged, plan.pushed): plan for plan in reversed(plans)}
    shown = {plan for plan in (*plans[:PLANS_SHOWN], *kinds.values()) if plan != first}
    return [first, *sorted(shown, key=plans.index)]


def _column(expr: Expr | None, aggregate: str) -> str:
    inner = render(expr) if expr else "*"
    return f"{aggregate}({inner})" if aggregate else inner


def _root(query: MoteQuery) -> str:
    if stays(query):
        return "has nothing to pass on: rows stay on their motes"
    if query.aggregate:
        return "merges the partial state records of its children and sends one for each epoch"
    return "passes rows on"


def _gateway(plan: QueryPlan, query: MoteQuery) -> dict[str, Any]:
    left = [c for c in conjuncts(plan.where) if c not in conjuncts(plan.mote_where)]
    has = {column.expr for column in query.columns}
    computed = [
        o
        for o in plan.outputs
        if o.expr not in has and not (o.expr.is_attribute and o.expr.operand in IN_EVERY_ROW)
    ]
    return {
        "held_ms": held_ms(query),
        "wait_ms": _wait_ms(plan),
        "history_ms": plan.history.span_ms if plan.history is not None else None,
        "windows": [str(window) for window in plan.window.windows] if plan.window is not None else [],
        "window_groups": plan.window.groups_maximum if plan.window is not None and plan.groups else None,
        "order": str(plan.order) if plan.order is not None else None,
        "having": render(plan.having) if plan.having is not None else None,
        "where": [{"condition": render(c), "because": _why_here(c)} for c in left],
        "columns": [
            f"{o.name} = {render(o.expr)}" for o in computed if render(o.expr).lower() != o.name.lower()
        ],
    }


def _wait_ms(plan: QueryPlan) -> int | None:
    """For how long after an epoch's beginning it is waited for who lacks in it; None: there are no such epochs. Where motes are more than
    :data:`skerry.planner.model.waits.HOPS` hops away it is more, unless WAIT says so."""
    if not plan.aggregate or plan.window is not None or (plan.history is not None and plan.history.only):
        return None
    return WAIT_MS if plan.wait_ms is None else plan.wait_ms


def _why_here(condition: Expr) -> str:
    """Why motes do not ask a condition."""
    if BY_NAME["epoch"].number in attributes_of(condition):
        return obstacle(condition) or "motes may count other epochs"
    return obstacle(condition) or f"it is too long for a mote's program of {PROGRAM_MAXIMUM} bytes"


def explain_text(explained: dict[str, Any]) -> str:
    """The same for people, in plain text."""
    motes, gateway = explained["motes"], explained["gateway"]
    sampled = ", ".join(f"{a['name']} ({a['energy'] * 1e6:g} µJ)" for a in motes["attributes"]) or "nothing"
    when = "once" if explained["once"] else f"every {duration_text(explained['period_ms'])}"
    when = when if motes["event"] is None else f"with each event {motes['event']} of their own"
    at_once = ", all at the epoch's beginning" if motes["at_once"] else ""
    lines = [
        "motes",
        f"  {when} acquire {sampled}{at_once}: {motes['energy_per_epoch'] * 1e6:.3g} µJ per epoch",
        *_lifetime_lines(explained),
        *(f"  {clause}" for clause in motes["clauses"]),
        *_sampling_lines(motes["sampling"]),
        *_event_lines(explained["events"]),
        f"  {'keep' if motes['stored'] else 'send'} {', '.join(motes['columns'])}"
        + (f" where {motes['where']}" if motes["where"] else ""),
        f"  program {motes['program_bytes']} of {motes['program_limit']} bytes,"
        f" {len(motes['columns'])} of {motes['columns_limit']} columns",
        *_record_lines(motes),
        *(_SNOOP_LINES if motes["snoop"] and not motes["errors"] else []),
        *(_APPROXIMATE_LINES if motes["errors"] else []),
        *(f"  {error}" for error in motes["errors"]),
        "root",
        f"  {explained['root']}",
        "gateway",
    ]
    if gateway["held_ms"]:
        lines.append(f"  puts rows in order, {duration_text(gateway['held_ms'])} after they were sampled")
    if gateway["wait_ms"] is not None:
        waits = duration_text(gateway["wait_ms"]) if gateway["wait_ms"] else "0 s"
        lines.append(
            f"  has one row for each epoch: when all motes are in it, or {waits} after its beginning"
        )
    if gateway["history_ms"] is not None:
        lines.append(
            f"  begins with what was recorded in the last {duration_text(gateway['history_ms'])}, from its files"
        )
    lines += [f"  keeps rows where {w['condition']} ({w['because']})" for w in gateway["where"]]
    for join in explained["joins"]:
        past = "" if join["past_ms"] is None else f" in the {duration_text(join['past_ms'])} before"
        lines.append(f"  joins with {join['table']}{past} where {join['where']}")
    lines += [f"  computes {column}" for column in gateway["columns"]]
    lines += (
        [f"  aggregates rows of all motes over {' and '.join(gateway['windows'])}"]
        if gateway["windows"]
        else []
    )
    if gateway["window_groups"] is not None:
        lines.append(f"  keeps at most {gateway['window_groups']:,} groups at once")
    lines += [f"  keeps epochs having {gateway['having']}"] if gateway["having"] else []
    lines += [f"  orders each window's rows by {gateway['order']}"] if gateway["order"] else []
    idle = not any(gateway[work] for work in ("where", "columns", "having", "windows", "order"))
    handed = "has no rows of it" if motes["stored"] else "hands rows to the user"
    lines += [f"  {handed}"] if idle else []
    lines += sharing_lines(explained["stream"])
    lines += route_lines(explained["route"])
    lines += [
        f"note: {name} is NULL on {len(lacking)} motes ({', '.join(map(str, lacking[:10]))})"
        for name, lacking in explained["lacking"].items()
    ]
    lines += [f"note: {note}" for note in explained["notes"]]
    lines += [f"note: {explained['doubt']}"] if explained["doubt"] is not None else []
    lines += [f"refused now: {explained['refused']}"] if explained["refused"] is not None else []
    return "\n".join(lines)


def _record_lines(motes: dict[str, Any]) -> list[str]:
    if motes["stored"]:
        return []
    return [
        f"  {motes['record_bytes']} bytes per record: {motes['air_time_per_hop'] * 1e3:.2f} ms on the air and"
        f" {motes['radio_energy_per_hop'] * 1e6:.0f} µJ for each hop"
    ]


def _lifetime_lines(explained: dict[str, Any]) -> list[str]:
    lifetime = explained["lifetime"]
    if lifetime is None:
        return []
    days = lifetime["predicted_ms"] / 86_400_000
    return [
        f"  fresh batteries give {lifetime['power'] * 1e3:.2f} mW for {duration_text(explained['duration_ms'])}:"
        f" {lifetime['idle_power'] * 1e3:.2f} mW idle, the rest for {lifetime['energy_per_epoch'] * 1e3:.2f} mJ per epoch;"
        f" they last {days:.0f} days",
        f"  motes with less take part in fewer epochs, at least every {duration_text(lifetime['slowest_period_ms'])}",
    ]


def _event_lines(events: dict[str, Any] | None) -> list[str]:
    """The ways to serve events that were considered."""
    if events is None:
        return []
    lines = [
        f"  event {name} comes {rate * 3600:.3g} times an hour"
        + (" (assumed: not heard twice yet)" if name in events["assumed"] else " (as heard lately)")
        for name, rate in events["rates"].items()
    ]
    lines.append(
        f"  of events that last {events['lasts']} s, {events['active']:.3g} are active at once on average;"
        f" each takes {events['energy_per_event'] * 1e6:.0f} µJ to spread"
    )
    lines.append("  ways to serve them considered, the first is taken; on average per epoch:")
    return lines + [f"    {way['energy_per_epoch'] * 1e6:8.2f} µJ  {way['way']}" for way in events["ways"]]


def _sampling_lines(plans: list[dict[str, Any]]) -> list[str]:
    """The orders that were considered, where there is a choice."""
    if len(plans) < 2:
        return []
    lines = ["  orders of sampling considered, on average:"]
    for plan in plans:
        conditions = ", then ".join(plan["conditions"]) if plan["staged"] else "all at once"
        lines.append(f"    {plan['energy_per_epoch'] * 1e6:8.1f} µJ  {conditions}")
    return lines
