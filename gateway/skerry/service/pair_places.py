"""Where motes join pairs: at the lowest mote above both, as far as the gateway knows the tree and there is room; else at the gateway.

Source: Mihaylov et al., Dynamic Join Optimization in Multi-Hop Wireless Sensor Networks (VLDB 2010), section 2 (join at the least common
ancestor).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skerry.catalog.catalog import Mote
from skerry.joins.placement.trees import Tree
from skerry.planner.model.clause import Clause
from skerry.planner.model.pairing import Pairing, clause_of, delay, host_bytes
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.mote_memory import MEMORY_BYTES
from skerry.planner.physical.program import program_size
from skerry.sensors.paired_motes import Pair, pairs_of
from skerry.service.explain_join import known_statics, trees
from skerry_protocol.packets import PROGRAM_MAXIMUM, PairsHost

#: Bytes for the rows of pairs that one mote joins: beside them its program and a plain query's are to have room.
ROOM = MEMORY_BYTES - 2 * PROGRAM_MAXIMUM
#: A mote's places are counted in a byte.
_ROWS_MAXIMUM = 255


@dataclass(frozen=True, slots=True)
class Places:
    """By host its pairs; ``base``: those that the gateway joins, and why by pair."""

    hosts: Mapping[int, tuple[Pair, ...]]
    base: Mapping[Pair, str]

    def described(self) -> dict[str, Any]:
        """For JSON."""
        hosts = [
            {"mote": host, "pairs": [list(pair) for pair in pairs]} for host, pairs in self.hosts.items()
        ]
        return {"hosts": hosts, "base": [{"pair": list(pair), "why": why} for pair, why in self.base.items()]}

    def lines(self) -> list[str]:
        """For people."""
        found = [f"  {len(pairs)} at {host}: {_named(pairs)}" for host, pairs in self.hosts.items()]
        whys = dict.fromkeys(self.base.values())
        return found + [
            f"  at the gateway, as {why}: {_named([p for p, said in self.base.items() if said == why])}"
            for why in whys
        ]


def _named(pairs: Sequence[Pair]) -> str:
    return ", ".join(f"{s} with {t}" for s, t in pairs)


def places(pairing: Pairing, period_ms: int, motes: Mapping[int, Mote], room: int = ROOM) -> Places:
    """Of the pairs of all motes that are known; ``room``: bytes that a host has for rows. Raises QueryError."""
    found: dict[int, list[Pair]] = defaultdict(list)
    base: dict[Pair, str] = {}
    known = trees(motes)
    tree_of = {number: known[mote.root] for number, mote in motes.items() if mote.root in known}
    for pair in pairs_of(pairing, {number: known_statics(mote) for number, mote in motes.items()}):
        of = {id(tree_of.get(mote)): tree_of.get(mote) for mote in pair}
        tree = next(iter(of.values()))
        if len(of) > 1 or tree is None or any(tree.up(mote) is None for mote in pair):
            base[pair] = "no way is known by which both reach one root"
            continue
        above = tree.ancestor(*pair)
        if above == tree.root:
            base[pair] = "no mote but the root is above both"
        else:
            found[above].append(pair)
    hosts: dict[int, tuple[Pair, ...]] = {}
    for host, pairs in sorted(found.items(), key=lambda one: (-_tree(tree_of, one[0]).hops(one[0]), one[0])):
        kept = list(pairs)
        while kept and not _has_room(pairing, period_ms, kept, room):
            base[kept.pop()] = f"mote {host} has room for no more rows"
        if kept:
            hosts[host] = tuple(kept)
    return Places(hosts, base)


def _tree(trees_of: Mapping[int, Tree], mote: int) -> Tree:
    return trees_of[mote]


def rows_of(pairing: Pairing, period_ms: int, pairs: Sequence[Pair]) -> int:
    """That a host of these pairs keeps: those in windows, by role, and those that wait."""
    roles = {("s", s) for s, _ in pairs} | {("t", t) for _, t in pairs}
    waiting = delay(period_ms) + 2 + pairing.epochs
    return len(roles) * pairing.rows + len({mote for pair in pairs for mote in pair}) * waiting


def _has_room(pairing: Pairing, period_ms: int, pairs: Sequence[Pair], room: int) -> bool:
    rows = rows_of(pairing, period_ms, pairs)
    return rows <= _ROWS_MAXIMUM and host_bytes(rows, pairing.width) <= room


def clause(plan: QueryPlan, placed: Places) -> tuple[Clause, Places]:
    """What motes are told of that, and what of it has room in a program."""
    pairing = plan.pairing
    assert pairing is not None
    left = PROGRAM_MAXIMUM - program_size(
        merge([replace(plan, clauses=(clause_of(pairing, plan.period_ms),))])
    )
    hosts, base = dict(placed.hosts), dict(placed.base)
    while hosts and _program_bytes(hosts, base) > left:
        fewest = min(hosts, key=lambda host: len(hosts[host]))
        base |= dict.fromkeys(hosts.pop(fewest), "a query's program has no room for more pairs")
    of_base = sorted({mote for pair in base for mote in pair})
    of_hosts = {mote for pairs in hosts.values() for pair in pairs for mote in pair}
    motes = [*of_base, *sorted(of_hosts.difference(of_base))]
    if not hosts and 2 * len(motes) > left:
        # All rows come; those of motes without a partner are of no pair.
        motes, of_base = [], []
    told = [(host, rows_of(pairing, plan.period_ms, pairs), pairs) for host, pairs in hosts.items()]
    made = clause_of(pairing, plan.period_ms, motes, len(of_base), told, sorted(base))
    return made, Places(hosts, base)


def _program_bytes(hosts: Mapping[int, Sequence[Pair]], base: Mapping[Pair, str]) -> int:
    """Of a program, for its motes and pairs."""
    motes = {mote for pairs in (*hosts.values(), list(base)) for pair in pairs for mote in pair}
    return 2 * len(motes) + sum(int(PairsHost.sizeof()) + 2 * len(pairs) for pairs in hosts.values())
