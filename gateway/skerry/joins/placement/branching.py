"""Where ways of a producer's rows part, and where ways to one mote meet (Mihaylov et al. 2010, appendix E): a mote there, which may join
none of the rows, passes them on, so that each hop is gone by, and listened to, once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations

from skerry.joins.placement.relays import PASSED_ON, Relays, Way, WayCost, depth, height
from skerry.joins.placement.trees import Tree

#: Whether two motes may hear each other: who sends to a neighbour does so at once, whatever the tree says.
Near = Callable[[int, int], bool]


def branched(
    found: Relays,
    needed: Mapping[Way, int],
    cost: WayCost,
    most: int,
    tree: Tree,
    allowed: Callable[[Relays], bool] = lambda _: True,
    near: Near = lambda _, __: False,
) -> Relays:
    """The same with motes that pass rows on and join none, where that costs less: where ways of a mote's rows part, and where ways to one
    host meet. The better of what comes of ``found``, and of none that pass rows on yet.
    Ways from one mote to another that is ``near`` stay: they are shorter than by the tree."""
    best, least = found, _total(found, needed, cost)
    for start in (found, Relays()):
        tried, total = _improved(start, needed, cost, most, tree, allowed, near)
        if total < least - _EQUAL:
            best, least = tried, total
    return best


_EQUAL = 1e-12


def _total(relays: Relays, needed: Mapping[Way, int], cost: WayCost) -> float:
    return sum(cost(way, carried) for way, carried in relays.ways(needed).items())


def _improved(
    found: Relays, needed: Mapping[Way, int], cost: WayCost, most: int, tree: Tree, allowed: Callable[[Relays], bool],
    near: Near,
) -> tuple[Relays, float]:  # fmt: skip
    """One change after the other, that which saves most first."""
    total, refused = _total(found, needed, cost), set[tuple[int, frozenset[int]]]()
    while True:
        ways = found.ways(needed)
        far = {way: carried for way, carried in ways.items() if not near(*way)}
        best: tuple[float, Relays, tuple[int, frozenset[int]]] | None = None
        for by, whose in _meetings(far, needed, tree, most):
            if (by, whose) in refused:
                continue
            changed = _through(found, ways, cost, most, tree, by, whose, near)
            if changed is None:
                continue
            tried = _total(changed, needed, cost)
            if tried < (best[0] if best else total) - _EQUAL:
                best = tried, changed, (by, whose)
        if best is None:
            return found, total
        if allowed(best[1]):
            total, found = best[0], best[1]
        else:
            refused.add(best[2])


def _meetings(
    ways: Mapping[Way, Mapping[int, int]], needed: Mapping[Way, int], tree: Tree, most: int
) -> Iterator[tuple[int, frozenset[int]]]:
    """Motes between a producer and its hosts by which several ways lead, and whose rows could come by each."""
    leading: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for source, host in ways:
        # A way by which a host has what another one passes on stays as it is.
        if source in ways[source, host]:
            for mote in tree.between(source, host)[1:-1]:
                if mote != tree.root:
                    leading[mote][host].add(source)
    for by, hosts in sorted(leading.items()):
        if sum(map(len, hosts.values())) < 2:
            continue
        sets = [*hosts.values(), *(one & other for one, other in combinations(hosts.values(), 2))]
        producers = set().union(*hosts.values())
        found = dict.fromkeys(frozenset({one}) for one in sorted(producers))
        for these in sets:
            rated = sorted(
                these, key=lambda one: (-sum(needed.get((one, host), 0) > 0 for host in hosts), one)
            )
            for count in range(2, min(most, len(rated)) + 1):
                found |= dict.fromkeys(map(frozenset, combinations(rated[: count + _SPARE], count)))
        yield from ((by, whose) for whose in found)


#: Of more motes than a way carries so many more are tried in each other's place.
_SPARE = 2


def _through(
    found: Relays, ways: Mapping[Way, Mapping[int, int]], cost: WayCost, most: int, tree: Tree, by: int, whose: frozenset[int], near: Near
) -> Relays | None:  # fmt: skip
    """Where rows of these come by a mote to all hosts for which that pays; None: to none."""
    of = dict(found.of)
    for host in sorted({host for source, host in ways if source in whose}):
        before, own = of.get(host, (by, frozenset()))
        there = {
            one
            for one in whose
            if list(ways.get((one, host), ())) == [one]
            and not near(one, host)
            and by in tree.between(one, host)[1:-1]
        }
        if before != by or not there or host == by or host in found.before(by) or by in found.before(host):
            continue
        if depth(found, by) + 1 + height(found, host) > PASSED_ON:
            continue
        carried = dict(ways.get((by, host), {}))
        joined = carried | {one: ways[one, host][one] for one in there}
        alone = sum(cost((one, host), ways[one, host]) for one in there)
        if len(joined) > most or alone + (cost((by, host), carried) if carried else 0.0) <= cost(
            (by, host), joined
        ):
            continue
        of[host] = by, own | there
    return Relays(of) if of != found.of else None
