"""Where motes join pairs: where the query says, as far as the gateway knows the tree and there is room; else at the gateway.

Source: Mihaylov et al., Dynamic Join Optimization in Multi-Hop Wireless Sensor Networks (VLDB 2010), sections 2 and 3.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skerry.catalog.catalog import Mote
from skerry.joins.placement.choosing import Decided
from skerry.joins.placement.estimates import Rates
from skerry.joins.placement.estimating import Estimate
from skerry.joins.placement.groups import Group
from skerry.joins.placement.trees import Tree
from skerry.planner.cost.join_prices import prices, way_cells
from skerry.planner.model.clause import Clause
from skerry.planner.model.pairing import (
    IN_NETWORK,
    Pairing,
    clause_of,
    delay,
    host_bytes,
    sending_bytes,
    with_pairs,
)
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.mote_memory import MEMORY_BYTES
from skerry.planner.physical.program import program_size
from skerry.sensors.paired_motes import Pair, pairs_of
from skerry.service.explain_join import UNITS, known_statics, trees
from skerry.service.pair_hosts import Reckoning, chosen
from skerry.sql.join_strategies import NAIVE
from skerry_protocol.codes import PairsWay
from skerry_protocol.limits import PROGRAM_MAXIMUM
from skerry_protocol.programs import PairsHost

#: Bytes for the rows of pairs that one mote joins: beside them its program and a plain query's are to have room.
ROOM = MEMORY_BYTES - 2 * PROGRAM_MAXIMUM
#: A mote's places are counted in a byte.
_ROWS_MAXIMUM = 255

#: A mote whose rows go by a way, or a root that sends them on, and the mote that joins them.
Way = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Places:
    """By host its pairs; ``base``: those that the gateway joins, and why by pair; ``groups``: what groups of pairs have decided, and
    ``unit``: what their difference is counted in."""

    hosts: Mapping[int, tuple[Pair, ...]]
    base: Mapping[Pair, str]
    groups: tuple[Decided, ...] = ()
    unit: str = "energy"

    def ways(self, way: PairsWay, root: int) -> set[Way]:
        """By which rows come to hosts."""
        return {one for host, pairs in self.hosts.items() for one in senders(way, pairs, host, root)}

    def described(self) -> dict[str, Any]:
        """For JSON."""
        hosts = [
            {"mote": host, "pairs": [list(pair) for pair in pairs]} for host, pairs in self.hosts.items()
        ]
        return {
            "hosts": hosts,
            "base": [{"pair": list(pair), "why": why} for pair, why in self.base.items()],
            "groups": [self._group(one) for one in self.groups],
        }

    def lines(self) -> list[str]:
        """For people."""
        found = [f"  {len(pairs)} at {host}: {_named(pairs)}" for host, pairs in self.hosts.items()]
        whys = dict.fromkeys(self.base.values())
        return found + [
            f"  at the gateway, as {why}: {_named([p for p, said in self.base.items() if said == why])}"
            for why in whys
        ]

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


#: Motes that join pairs of one query whose rows go to them by ways.
HOSTS_MAXIMUM = 16
#: Ways that lead by a mote, and motes to whom it knows the way down, for joins: by board, of 6 and 4, and of 32 each, that there are.
WAYS_ROOM, TRAILS_ROOM = {"iris": 5, "cc2538": 16}, {"iris": 4, "cc2538": 32}


def places(
    pairing: Pairing,
    period_ms: int,
    motes: Mapping[int, Mote],
    room: int = ROOM,
    rates: Rates | None = None,
    taken: Collection[Way] = (),
    *,
    forced: bool = False,
) -> Places:
    """Of the pairs of all motes that are known; ``room``: bytes that a host has for rows; ``taken``: ways of other queries; ``forced``: in
    the network also what costs less at the gateway. Raises QueryError."""
    base: dict[Pair, str] = {}
    known = trees(motes)
    statics = {number: known_statics(mote) for number, mote in motes.items()}
    tree_of = {number: known[mote.root] for number, mote in motes.items() if mote.root in known}
    within: dict[int, list[Pair]] = defaultdict(list)
    for pair in pairs_of(pairing, statics):
        of = {id(tree_of.get(mote)): tree_of.get(mote) for mote in pair}
        tree = next(iter(of.values()))
        if len(of) > 1 or tree is None or any(tree.up(mote) is None for mote in pair):
            base[pair] = "no way is known by which both reach one root"
        else:
            within[tree.root].append(pair)
    rates = rates if rates is not None else Rates(pairing.estimates)
    price = prices(pairing.cost, pairing.width // 2, pairing.width, period_ms / 1000)
    ways = _Ways(tree_of, motes, set(taken))
    hosts: dict[int, tuple[Pair, ...]] = {}
    groups: list[Decided] = []
    for root, pairs in within.items():
        reckoning = Reckoning(pairing, known[root], motes, statics, rates, price, forced)
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
            kept = found[host]
            waits = sending_bytes(pairing.width, delay(period_ms, pairing.way))
            spare = waits if pairing.way is PairsWay.SENT else 0
            fitting = _fitting(pairing, period_ms, kept, host, room - spare)
            full = f"mote {host} has room for no more rows"
            base |= dict.fromkeys((pair for pair in kept if pair not in fitting), full)
            kept = fitting
            if pairing.way is not PairsWay.CLIMB:
                kept = ways.led(pairing, period_ms, kept, host, base)
                if len(hosts) == HOSTS_MAXIMUM:
                    base |= dict.fromkeys(kept, f"{HOSTS_MAXIMUM} motes join already")
                    kept = []
            if kept:
                hosts[host] = tuple(kept)
        if pairing.strategy == IN_NETWORK and not forced:
            _none_dearer(reckoning, [one.group.pairs for one in decided], hosts, base)
    return Places(hosts, base, tuple(groups), pairing.cost)


def _none_dearer(
    reckoning: Reckoning,
    groups: Sequence[Sequence[Pair]],
    hosts: dict[int, tuple[Pair, ...]],
    base: dict[Pair, str],
) -> None:
    """Of one root's groups: what is left of one in the network, where motes have room, is to cost no more than the group at the gateway,
    nor all of them more than all."""
    root = reckoning.tree.root
    estimate = Estimate(reckoning.tree, reckoning.rates, reckoning.prices)
    here = {pair for group in groups for pair in group}
    at = {pair: host for host, kept in hosts.items() for pair in kept if pair in here}
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


def senders(way: PairsWay, pairs: Iterable[Pair], host: int, root: int) -> set[Way]:
    """By which ways a host's rows come."""
    if way is PairsWay.CLIMB:
        return set()
    if way is PairsWay.FROM_ROOT:
        return {(root, host)} if any(pair != (host, host) for pair in pairs) else set()
    return {(mote, host) for pair in pairs for mote in pair if mote != host}


@dataclass
class _Ways:
    """Which ways there are, so that no mote has more than it has room for."""

    tree_of: Mapping[int, Tree]
    motes: Mapping[int, Mote]
    taken: set[Way]

    def led(
        self, pairing: Pairing, period_ms: int, pairs: Sequence[Pair], host: int, base: dict[Pair, str]
    ) -> list[Pair]:
        """Those of a host's pairs for whose rows there is room on the way; ``base`` hears of the others."""
        kept: list[Pair] = []
        # A fifth of the cells is for what has failed in others.
        tree, most = self.tree_of[host], int(way_cells(period_ms / 1000) * 4 / 5)
        for pair in pairs:
            rows = len({s for s, _ in (*kept, pair)} - {host})
            if pairing.way is PairsWay.FROM_ROOT and rows > most:
                base[pair] = f"a way to mote {host} carries {most} rows in a sample period"
                continue
            more = self.taken | senders(pairing.way, [pair], host, tree.root)
            full = None if more == self.taken else self._full(more)
            if full is not None:
                base[pair] = f"mote {full} has room for no more ways"
                continue
            self.taken = more
            kept.append(pair)
        return kept

    def _full(self, ways: Collection[Way]) -> int | None:
        """A mote by which too many of them lead."""
        led: dict[int, int] = defaultdict(int)
        found: dict[int, set[int]] = defaultdict(set)
        for source, host in ways:
            tree = self.tree_of.get(host)
            if tree is None or tree.up(source) is None or tree.up(host) is None:
                continue
            for mote in tree.between(source, host):
                led[mote] += 1
            for mote in tree.way(host):
                found[mote].add(host)
        full = [mote for mote, count in led.items() if count > self._room(WAYS_ROOM, mote)]
        full += [mote for mote, hosts in found.items() if len(hosts) > self._room(TRAILS_ROOM, mote)]
        return min(full, default=None)

    def _room(self, by_board: Mapping[str, int], mote: int) -> int:
        board = self.motes[mote].board if mote in self.motes else None
        return by_board.get(board or "", min(by_board.values()))


def rows_of(pairing: Pairing, period_ms: int, pairs: Sequence[Pair]) -> int:
    """That a host of these pairs keeps: those in windows, by role, and those that wait."""
    roles = {("s", s) for s, _ in pairs} | {("t", t) for _, t in pairs}
    waiting = delay(period_ms, pairing.way) + 2 + pairing.epochs
    return len(roles) * pairing.rows + len({mote for pair in pairs for mote in pair}) * waiting


def _fitting(pairing: Pairing, period_ms: int, pairs: Sequence[Pair], host: int, room: int) -> list[Pair]:
    """Those for whose rows a host has room: without the motes that are in fewest of them."""
    kept = list(pairs)
    while kept and not _has_room(pairing, period_ms, kept, room):
        count = Counter(mote for pair in kept for mote in pair if mote != host)
        least = min(count, key=lambda mote: (count[mote], -mote), default=host)
        kept = [pair for pair in kept if least not in pair]
    return kept


def _has_room(pairing: Pairing, period_ms: int, pairs: Sequence[Pair], room: int) -> bool:
    rows = rows_of(pairing, period_ms, pairs)
    return rows <= _ROWS_MAXIMUM and host_bytes(rows, pairing.width) <= room


def clause(plan: QueryPlan, placed: Places) -> tuple[Clause, Places]:
    """What motes are told of that, and what of it has room in a program."""
    pairing = plan.pairing
    assert pairing is not None
    left = PROGRAM_MAXIMUM - program_size(
        merge([replace(plan, clauses=with_pairs(clause_of(pairing, plan.period_ms), plan.clauses))])
    )
    hosts, base = dict(placed.hosts), dict(placed.base)
    while hosts and _program_bytes(hosts, base) > left:
        fewest = min(hosts, key=lambda host: len(hosts[host]))
        base |= dict.fromkeys(hosts.pop(fewest), "a query's program has no room for more pairs")
    of_base = sorted({mote for pair in base for mote in pair})
    of_hosts = {mote for pairs in hosts.values() for pair in pairs for mote in pair}
    motes = [*of_base, *sorted(of_hosts.difference(of_base))]
    if pairing.strategy == NAIVE or (not hosts and 2 * len(motes) > left):
        # All rows come; those of motes without a partner are of no pair.
        motes, of_base = [], []
    told = [(host, rows_of(pairing, plan.period_ms, pairs), pairs) for host, pairs in hosts.items()]
    made = clause_of(pairing, plan.period_ms, motes, len(of_base), told, sorted(base))
    return made, replace(placed, hosts=hosts, base=base)


def _program_bytes(hosts: Mapping[int, Sequence[Pair]], base: Mapping[Pair, str]) -> int:
    """Of a program, for its motes and pairs."""
    motes = {mote for pairs in (*hosts.values(), list(base)) for pair in pairs for mote in pair}
    return 2 * len(motes) + sum(int(PairsHost.sizeof()) + 2 * len(pairs) for pairs in hosts.values())
