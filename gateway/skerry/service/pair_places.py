"""Where motes join pairs: where the query says, as far as the gateway knows the tree and there is room; else at the gateway.

Source: Mihaylov et al., Dynamic Join Optimization in Multi-Hop Wireless Sensor Networks (VLDB 2010), sections 2 and 3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot
from typing import Any

from skerry.catalog.catalog import Mote
from skerry.joins.placement.branching import Near
from skerry.joins.placement.choosing import Decided
from skerry.joins.placement.estimates import Rates
from skerry.joins.placement.estimating import Estimate
from skerry.joins.placement.groups import Group
from skerry.joins.placement.plans import needed
from skerry.joins.placement.relays import Relays
from skerry.joins.placement.trees import Tree
from skerry.planner.cost.join_prices import prices
from skerry.planner.model.clause import Clause
from skerry.planner.model.pair_groups import groups
from skerry.planner.model.pairing import (
    IN_NETWORK,
    Pairing,
    clause_of,
    named,
    with_pairs,
)
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.mote_memory import MEMORY_BYTES
from skerry.planner.physical.program import program_size
from skerry.sensors.paired_motes import Pair, pairs_of
from skerry.service.explain_join import UNITS, known_statics, trees
from skerry.service.pair_answers import Crowded
from skerry.service.pair_hosts import Reckoning, chosen
from skerry.service.pair_room import HOSTS_MAXIMUM, Room, rows_of
from skerry.service.pair_ways import Way, Ways, carried_rows, rows_by, senders
from skerry.sql.join_strategies import NAIVE
from skerry_protocol.codes import PairsWay
from skerry_protocol.limits import PAIRS_MOTES, PROGRAM_MAXIMUM
from skerry_protocol.programs import PairsHost

#: Bytes for the rows of pairs that one mote joins: beside them its program and a plain query's are to have room.
ROOM = MEMORY_BYTES - 2 * PROGRAM_MAXIMUM
_NONE_TAKEN: Mapping[Way, float] = {}


@dataclass(frozen=True, slots=True)
class Places:
    """By host its pairs; ``base``: those that the gateway joins, and why by pair; ``groups``: what groups of pairs have decided, and
    ``unit``: what their difference is counted in; ``relays``: who passes whose rows on; ``crowded``: who may have more answers than it
    gets up the tree."""

    hosts: Mapping[int, tuple[Pair, ...]]
    base: Mapping[Pair, str]
    groups: tuple[Decided, ...] = ()
    unit: str = "energy"
    relays: Relays = field(default_factory=Relays)
    crowded: tuple[Crowded, ...] = ()
    #: The same where hosts alone pass rows on, for a program that has no room for others.
    among_hosts: Relays = field(default_factory=Relays)

    def ways(self, way: PairsWay, root: int) -> set[Way]:
        """By which rows come to hosts."""
        if way is PairsWay.SENT:
            return set(self.relays.ways(needed(self.at)))
        return {one for host, pairs in self.hosts.items() for one in senders(way, pairs, host, root)}

    def loads(self, way: PairsWay, root: int, period_ms: int) -> dict[Way, float]:
        """How many rows go by each of these in a second, where all pass."""
        if way is PairsWay.SENT:
            rows = {one: len(carried) for one, carried in self.relays.ways(needed(self.at)).items()}
        else:
            rows = {
                one: rows_by(way, pairs, host)
                for host, pairs in self.hosts.items()
                for one in senders(way, pairs, host, root)
            }
        return {one: count * 1000 / period_ms for one, count in rows.items()}

    @property
    def at(self) -> dict[Pair, int]:
        """By pair the mote that joins it, where one does."""
        return _at(self.hosts)

    def described(self) -> dict[str, Any]:
        """For JSON."""
        hosts = [
            {
                "mote": host,
                "pairs": [list(pair) for pair in pairs],
                "passed_on": self._passed_on(host),
            }
            for host, pairs in self.hosts.items()
        ]
        return {
            "hosts": hosts,
            "branches": [
                {"mote": mote, "passed_on": self._passed_on(mote)}
                for mote in self.relays.branching(self.hosts)
            ],
            "base": [{"pair": list(pair), "why": why} for pair, why in self.base.items()],
            "groups": [self._group(one) for one in self.groups],
            "crowded": [{"mote": one.mote, "answers": one.answers, "most": one.most} for one in self.crowded],
        }

    def lines(self) -> list[str]:
        """For people."""
        found = [
            f"  {len(pairs)} at {host}: {_named(pairs)}{self._passed_text(host)}"
            for host, pairs in self.hosts.items()
        ]
        found += [
            f"  none at {mote}, by which rows go to others{self._passed_text(mote)}"
            for mote in self.relays.branching(self.hosts)
        ]
        found += [f"  {one}: answers may come late, or lack" for one in self.crowded[:1]]
        whys = dict.fromkeys(self.base.values())
        return found + [
            f"  at the gateway, as {why}: {_named([p for p, said in self.base.items() if said == why])}"
            for why in whys
        ]

    def _passed_on(self, host: int) -> dict[str, Any] | None:
        """By whom rows come to a host that others have before, and whose."""
        if host not in self.relays.of:
            return None
        by, whose = self.relays.of[host]
        return {"by": by, "rows_of": sorted(whose)}

    def _passed_text(self, host: int) -> str:
        passed = self._passed_on(host)
        return (
            f"; mote {passed['by']} passes on rows of {', '.join(map(str, passed['rows_of']))}"
            if passed
            else ""
        )

    def group_lines(self) -> list[str]:
        """What groups of several pairs have decided, for people."""
        shown = [one for one in self.groups if len(one.group.pairs) > 1]
        more = [f"  and {len(shown) - _GROUPS_SHOWN} more groups"] if len(shown) > _GROUPS_SHOWN else []
        return [self._group_line(one) for one in shown[:_GROUPS_SHOWN]] + more

    def _joined(self, group: Group) -> str:
        there = sum(pair not in self.base for pair in group.pairs)
        return "at base" if there == 0 else "in network" if there == len(group.pairs) else "both"

    def _group(self, one: Decided) -> dict[str, Any]:
        return {
            "motes": sorted(one.group.producers),
            "pairs": [list(pair) for pair in one.group.pairs],
            "complete": one.group.complete,
            "joined": self._joined(one.group),
            "difference": one.difference,
        }

    def _group_line(self, one: Decided) -> str:
        _, unit, scale = UNITS[self.unit]
        more = "more" if one.difference >= 0 else "less"
        motes = ", ".join(map(str, sorted(one.group.producers)))
        return (
            f"  group of {motes}: {len(one.group.pairs)} pairs, {_JOINED[self._joined(one.group)]};"
            f" in the network takes {abs(one.difference) * scale:.4g} {unit} {more} than at the base"
        )


#: Groups that the text tells of.
_GROUPS_SHOWN = 20
_JOINED = {
    "in network": "in the network",
    "at base": "at the base",
    "both": "some in the network, some at the base",
}


def _named(pairs: Sequence[Pair]) -> str:
    return ", ".join(f"{s} with {t}" for s, t in pairs)


def places(
    pairing: Pairing,
    period_ms: int,
    motes: Mapping[int, Mote],
    room: int = ROOM,
    rates: Rates | None = None,
    taken: Mapping[Way, float] = _NONE_TAKEN,
    *,
    forced: bool = False,
) -> Places:
    """Of the pairs of all motes that are known; ``room``: bytes that a host has for rows; ``taken``: ways of other queries, and how
    many of their rows each carries in a second; ``forced``: in the network also what costs less at the gateway. Raises QueryError."""
    base: dict[Pair, str] = {}
    known = trees(motes)
    statics = {number: known_statics(mote) for number, mote in motes.items()}
    tree_of = {number: known[mote.root] for number, mote in motes.items() if mote.root in known}
    within = _within(pairs_of(pairing, statics), tree_of, base)
    rates = rates if rates is not None else Rates(pairing.estimates)
    price = prices(pairing.cost, pairing.width // 2, pairing.width, period_ms / 1000)
    ways, others = Ways(tree_of, motes, taken), Ways(tree_of, motes, taken)
    has = Room(pairing, period_ms, room)
    hosts: dict[int, tuple[Pair, ...]] = {}
    groups: list[Decided] = []
    relays: dict[int, tuple[int, frozenset[int]]] = {}
    among_hosts = dict(relays)
    for root, pairs in within.items():
        reckoning = Reckoning(
            pairing, known[root], motes, statics, rates, price, has, others, forced, carried_rows(period_ms)
        )
        found: dict[int, list[Pair]] = defaultdict(list)
        choices, decided = chosen(reckoning, pairs)
        groups += decided
        for pair, (host, why) in choices.items():
            if host == root:
                base[pair] = why
            else:
                found[host].append(pair)
        depth = {host: known[root].hops(host) for host in found}
        for host in sorted(found, key=lambda host: (-depth[host], host)):
            kept = has.fitting(found[host], host)
            full = f"mote {host} has room for no more rows"
            base |= dict.fromkeys((pair for pair in found[host] if pair not in kept), full)
            if pairing.way is not PairsWay.CLIMB and len(hosts) == HOSTS_MAXIMUM:
                base |= dict.fromkeys(kept, f"{HOSTS_MAXIMUM} motes join already")
                continue
            if pairing.way is not PairsWay.CLIMB:
                kept = ways.led(pairing, period_ms, kept, host, base)
            if kept:
                hosts[host] = tuple(kept)
        estimate = _relaying(reckoning, hosts)
        if pairing.strategy == IN_NETWORK and not forced:
            _none_dearer(estimate, [one.group.pairs for one in decided], hosts, base)
        at = {pair: host for pair, host in _at(hosts).items() if known[root].up(host) is not None}
        among_hosts |= estimate.relays(needed(at)).of
        relays |= estimate.branched(needed(at)).of
    return Places(hosts, base, tuple(groups), pairing.cost, Relays(relays), among_hosts=Relays(among_hosts))


def _at(hosts: Mapping[int, Sequence[Pair]]) -> dict[Pair, int]:
    return {pair: host for host, pairs in hosts.items() for pair in pairs}


def _within(
    pairs: Iterable[Pair], tree_of: Mapping[int, Tree], base: dict[Pair, str]
) -> dict[int, list[Pair]]:
    """By root those of which both motes reach it; ``base`` hears of the others."""
    within: dict[int, list[Pair]] = defaultdict(list)
    for pair in pairs:
        of = {id(tree_of.get(mote)): tree_of.get(mote) for mote in pair}
        tree = next(iter(of.values()))
        if len(of) > 1 or tree is None or any(tree.up(mote) is None for mote in pair):
            base[pair] = "no way is known by which both reach one root"
        else:
            within[tree.root].append(pair)
    return within


def _relaying(reckoning: Reckoning, hosts: Mapping[int, Sequence[Pair]]) -> Estimate:
    """What placings cost of which these hosts have all pairs or fewer: where motes have room for the rows and for the ways, hosts pass rows
    on to others."""
    has, others, kept = reckoning.room, reckoning.others, dict(hosts)

    def allowed(relays: Relays, sent: Mapping[Way, int]) -> bool:
        has_room = not any(has.over(kept.get(by, ()), passes_on=True) for by, _ in relays.of.values())
        has_room &= len(kept) + len(relays.branching(kept)) <= HOSTS_MAXIMUM
        ways, period_ms = relays.ways(sent), has.period_ms
        carry = all(others.carries(way, len(rows), period_ms) for way, rows in ways.items())
        return has_room and carry and others.over(ways) == 0

    most = reckoning.most if reckoning.pairing.way is PairsWay.SENT else 0
    near = _near(reckoning.tree, reckoning.motes)
    return Estimate(reckoning.tree, reckoning.rates, reckoning.prices, most, allowed, near)


def _near(tree: Tree, motes: Mapping[int, Mote]) -> Near:
    """Motes may hear each other that stand no farther apart than a mote and its parent do, somewhere in the tree."""

    def apart(one: int, other: int) -> float:
        return hypot(motes[one].xpos - motes[other].xpos, motes[one].ypos - motes[other].ypos)

    links = [link for link in tree.parents.items() if motes.keys() >= set(link)]
    reach = max((apart(*link) for link in links), default=0.0)
    # Where all are at one place nobody has said where they stand.
    return lambda one, other: 0 < apart(one, other) <= reach * _ROUNDED


#: Sums of places may be off by so much.
_ROUNDED = 1 + 1e-9


def _none_dearer(
    estimate: Estimate,
    groups: Sequence[Sequence[Pair]],
    hosts: dict[int, tuple[Pair, ...]],
    base: dict[Pair, str],
) -> None:
    """Of one root's groups: what is left of one in the network, where motes have room, is to cost no more than the group at the gateway,
    nor all of them more than all."""
    root = estimate.tree.root
    here = {pair for group in groups for pair in group}
    at = {pair: host for pair, host in _at(hosts).items() if pair in here}
    places = dict.fromkeys(here, root) | at
    for group in (*(group for group in groups if any(pair not in at for pair in group)), here):
        there = [pair for pair in group if places[pair] != root]
        moved = {**places, **dict.fromkeys(there, root)}
        if there and estimate.cost(moved) < estimate.cost(places):
            places = moved
            base |= dict.fromkeys(
                there, "by estimate motes have room for too few of the pairs to be worth it"
            )
    for host in set(at.values()):
        kept = tuple(pair for pair in hosts[host] if pair not in here or places[pair] != root)
        if kept:
            hosts[host] = kept
        else:
            del hosts[host]


def clause(plan: QueryPlan, placed: Places) -> tuple[Clause, Places]:
    """What motes are told of that, and what of it has room in a program."""
    pairing = plan.pairing
    assert pairing is not None
    empty = clause_of(pairing, plan.period_ms)
    size = program_size(merge([replace(plan, clauses=with_pairs(empty, plan.clauses))]))
    most = PROGRAM_MAXIMUM - size + len(empty.values)

    def told(here: Places, *, all_come: bool = False) -> Clause:
        # Those to whom others pass rows on come before these.
        all_told = {**here.hosts, **dict.fromkeys(here.relays.branching(here.hosts), ())}
        order = sorted(all_told, key=lambda host: -len(here.relays.before(host)))
        hosts = [(host, rows_of(pairing, plan.period_ms, all_told[host]), all_told[host]) for host in order]
        return clause_of(pairing, plan.period_ms, hosts, sorted(here.base), here.relays.of, all_come=all_come)

    def has_room(here: Places) -> bool:
        return _has_numbers(here) and len(told(here).values) <= most

    if not has_room(placed):
        placed = replace(placed, relays=placed.among_hosts)
    while placed.hosts and not has_room(placed):
        placed = _without_dearest(placed)
    # Where all rows come, those of motes without a partner are of no pair.
    all_come = pairing.strategy == NAIVE or len(told(placed).values) > most
    return told(placed, all_come=all_come), placed


def _has_numbers(placed: Places) -> bool:
    """Whether a program can name all motes that hosts are told of."""
    hosts = {**placed.hosts, **dict.fromkeys(placed.relays.branching(placed.hosts), ())}
    return len(named((host, 0, pairs) for host, pairs in hosts.items())) <= PAIRS_MOTES


def _without_dearest(placed: Places) -> Places:
    """The gateway joins the pairs of the host that takes most bytes for each of its pairs."""

    def bytes_for_each(host: int) -> float:
        pairs = placed.hosts[host]
        return (int(PairsHost.sizeof()) + sum(map(len, groups(pairs)))) / len(pairs)

    dearest = max(placed.hosts, key=lambda host: (bytes_for_each(host), host))
    # To whom it passes rows on there would be other ways, for which there may be no room.
    gone = [host for host in placed.hosts if host == dearest or dearest in placed.relays.before(host)]
    why = "a query's program has no room for more pairs"
    base = {**placed.base, **{pair: why for host in gone for pair in placed.hosts[host]}}
    kept = {host: pairs for host, pairs in placed.hosts.items() if host not in gone}
    return replace(placed, hosts=kept, base=base, relays=placed.relays.without(gone))
