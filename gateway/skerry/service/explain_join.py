"""Where pairs of motes could be joined, and what each way costs by estimate: what explain says of a join of motes with motes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skerry.joins.placement import strategies
from skerry.joins.placement.estimates import Estimates, Pair, Rates
from skerry.joins.placement.pair import BASE
from skerry.joins.placement.plans import Plan
from skerry.joins.placement.trees import Tree
from skerry.planner.cost.join_prices import prices
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.sensors.mote_pairs import STATIC, MotePairs, aliases, mote_pairs, window_rows
from skerry.sql.join_strategies import JoinHints
from skerry_protocol.attributes import BY_NAME

if TYPE_CHECKING:
    from skerry.catalog.catalog import Catalog, Mote
    from skerry.catalog.static_attributes import Statics
    from skerry.planner.model.source_plans import JoinPlan

#: Of more pairs it is not reckoned what each way costs.
PAIRS_MAXIMUM = 3000
#: Of the motes that would join, those that the text names.
MOTES_SHOWN = 8
UNITS = {"energy": ("J", "mJ", 1e3), "bytes": ("B", "B", 1.0)}


def describe_join(
    join: JoinPlan, catalog: Catalog, statics: Statics, taken: str, hints: JoinHints
) -> dict[str, Any] | None:
    """Of a join at the gateway that motes cannot do, and why; None: it is no join of motes with motes. Costs are of all motes and a sample
    period, in J or bytes. ``statics``: attributes that users have made; ``hints``: what its user says of it."""
    both = aliases(join)
    if both is None:
        return None
    motes = {mote.nodeid: mote for mote in catalog.all()}
    plan = plan_query(both[0].motes or "", statics=statics)
    assert isinstance(plan, QueryPlan)
    found = mote_pairs(join, {number: known_statics(mote) for number, mote in motes.items()})
    estimates, unit = Estimates(hints.s, hints.t, hints.pair, window_rows(join, plan.period_ms)), hints.cost
    described: dict[str, Any] = {
        "runs": strategies.NAIVE,
        "taken": taken,
        "cost": unit,
        "estimates": {"s": estimates.s, "t": estimates.t, "pair": estimates.pair, "window": estimates.window},
        "aliases": [one.alias for one in both],
        "motes": {},
        "pairs": 0,
        "elsewhere": 0,
        "learns": False,
        "strategies": [],
        "why": None,
    }
    if found is None or len(found.pairs) > PAIRS_MAXIMUM:
        return {**described, "why": "there are too many pairs to reckon"}
    described["motes"] = {both[0].alias: len(found.s), both[1].alias: len(found.t)}
    described["pairs"] = len(found.pairs)
    if not found.clauses:
        return {
            **described,
            "why": "no condition between both is of static attributes alone, so that any two motes may be a pair",
        }
    if not found.pairs:
        return {**described, "why": "no two motes that the gateway knows are a pair"}
    considered = _considered(found, trees(motes), estimates, prices_of(join, unit, plan.period_ms / 1000))
    placed = considered[0][0].places if considered else {}
    described["elsewhere"] = len(found.pairs) - len(placed)
    if not considered:
        return {**described, "why": "the gateway knows no way by which the motes of any pair reach one root"}
    described["strategies"] = [
        {
            "strategy": plan.name,
            "cost": cost,
            "joined_at": dict(Counter(plan.places.values()).most_common()),
            "why": None,
        }
        for plan, cost in considered
    ]
    return described


def prices_of(join: JoinPlan, unit: str, period_s: float) -> Any:
    """By the columns that motes send, and those that its user sees."""
    needs = max(len(one.needs) for one in join.tables)
    return prices(unit, needs, len(join.executed()["select"]), period_s)


def _considered(
    found: MotePairs, trees: Mapping[int, Tree], estimates: Estimates, price: Any
) -> list[tuple[Plan, float]]:
    """Strategies over all trees, the cheapest first, the base of equals."""
    rates, whole = Rates(estimates), dict[str, tuple[list[Plan], float]]()
    for tree in trees.values():
        inside = {mote for mote in (*found.s, *found.t) if tree.up(mote) is not None}
        pairs = tuple(pair for pair in found.pairs if inside.issuperset(pair))
        if not pairs:
            continue
        passing = {
            mote: frozenset(role for role, those in (("s", found.s), ("t", found.t)) if mote in those)
            for mote in inside
        }
        query = strategies.Query(pairs, passing)
        network = strategies.Network(tree, {pair: (tree.between(*pair),) for pair in pairs}, {})
        for plan in (
            strategies.naive(query, network),
            strategies.base(query, network),
            strategies.ancestors(query, network),
            strategies.through(query, network),
            strategies.pairwise(query, network, rates, price),
        ):
            before, cost = whole.get(plan.name, ([], 0.0))
            whole[plan.name] = [*before, plan], cost + plan.cost(rates, price, tree)
    merged = [(_merged(name, plans), cost) for name, (plans, cost) in whole.items()]
    return sorted(merged, key=lambda one: (one[1], one[0].name != BASE))


def _merged(name: str, parts: list[Plan]) -> Plan:
    places: dict[Pair, int] = {}
    for part in parts:
        places |= part.places
    return Plan(name, places, tuple(flow for part in parts for flow in part.flows))


def trees(motes: Mapping[int, Mote]) -> dict[int, Tree]:
    """By root, of the motes that were last heard through it."""
    parents = {number: mote.parent for number, mote in motes.items() if mote.parent is not None}
    roots = {mote.root for mote in motes.values() if mote.root is not None}
    return {
        root: Tree(root, {number: above for number, above in parents.items() if motes[number].root == root})
        for root in sorted(roots)
    }


def known_statics(mote: Mote) -> dict[str, int]:
    """Static attributes as the mote has them."""
    statics = {
        name: mote.statics[BY_NAME[name].number] for name in STATIC if BY_NAME[name].number in mote.statics
    }
    place = {"xpos": round(mote.xpos * 100), "ypos": round(mote.ypos * 100)}
    boards = {"iris": 1, "cc2538": 2, "host": 255}
    return (
        statics
        | place
        | {"nodeid": mote.nodeid}
        | ({"board": boards[mote.board]} if mote.board in boards else {})
    )


def join_lines(described: dict[str, Any] | None, places: Sequence[str] = ()) -> list[str]:
    """The same for people; ``places``: where motes join, line by line."""
    lines = ["where pairs of motes are joined", *places]
    if described is None:
        return lines
    if described["why"] is not None:
        return [*lines, f"  at the base alone: {described['why']}"]
    one, other = described["aliases"]
    motes, estimates = described["motes"], described["estimates"]
    lines += [
        f"  {described['pairs']} pairs of {motes[one]} motes as {one} with {motes[other]} as {other}, by what never changes on them",
        f"  estimates: {one} {estimates['s']:.0%}, {other} {estimates['t']:.0%}, pair {estimates['pair']:.0%},"
        f" {estimates['window']:g} rows in a window; "
        + (
            "placed anew by what is counted while it runs"
            if described["learns"]
            else "nothing is learnt while it runs"
        ),
        f"  strategies considered, {described['cost']} of all motes in each sample period:",
        *(_line(way, described) for way in described["strategies"]),
        f"  taken: {described['runs']}, as {described['taken']}",
    ]
    if described["elsewhere"]:
        lines.append(
            f"  {described['elsewhere']} pairs have no common root that the gateway knows: they join there"
        )
    return lines


def _line(way: dict[str, Any], described: dict[str, Any]) -> str:
    _, unit, scale = UNITS[described["cost"]]
    taken = "taken" if way["strategy"] == described["runs"] else ""
    if way["cost"] is None:
        return f"    {'':10} {'':{len(unit)}}  {way['strategy']:14}{taken or 'not'}: {way['why']}"
    told = "; ".join(part for part in (taken, _where(way)) if part)
    return f"    {way['cost'] * scale:10.4g} {unit}  {way['strategy']:14}{told}".rstrip()


def _where(way: dict[str, Any]) -> str:
    if way["strategy"] in (strategies.NAIVE, BASE):
        return ""
    shown = [f"{pairs} at {mote}" for mote, pairs in list(way["joined_at"].items())[:MOTES_SHOWN]]
    more = len(way["joined_at"]) - len(shown)
    return f"pairs: {', '.join(shown)}" + (f", and at {more} more motes" if more > 0 else "")
