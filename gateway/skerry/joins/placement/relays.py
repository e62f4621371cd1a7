"""A producer's rows for several motes as one tree (Mihaylov et al. 2010, appendix E): a mote that joins them passes them on to another that
needs them, too, so that they take the links between both once, and those before it once for both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

#: From whom rows come, and to whom they go.
Way = tuple[int, int]

#: Hosts by which a row goes, one after the other, before the last one: each takes time.
PASSED_ON = 2


@dataclass
class Relays:
    """``of``: by host the one that passes rows on to it, and whose."""

    of: dict[int, tuple[int, frozenset[int]]] = field(default_factory=dict)

    def source(self, producer: int, host: int) -> int:
        """From whom the host has a producer's rows: from another host, or from itself."""
        by, whose = self.of.get(host, (host, frozenset()))
        return by if producer in whose else producer

    def ways(self, needed: Mapping[Way, int]) -> dict[Way, dict[int, int]]:
        """By way the motes whose rows it carries, and as what they pass: bits. ``needed``: by producer and host the same."""
        found: dict[Way, dict[int, int]] = defaultdict(dict)
        for (producer, host), bits in needed.items():
            # What a host passes on goes to it by all ways before.
            at = host
            while True:
                source = self.source(producer, at)
                carried = found[source, at]
                carried[producer] = carried.get(producer, 0) | bits
                if source == producer:
                    break
                at = source
        return dict(found)

    def before(self, host: int) -> list[int]:
        """Who passes rows on to it, and to that one, and so forth."""
        found: list[int] = []
        while host in self.of and self.of[host][0] not in found:
            host = self.of[host][0]
            found.append(host)
        return found

    def branching(self, hosts: Iterable[int]) -> list[int]:
        """Who passes rows on and joins none."""
        return sorted({by for by, _ in self.of.values()} - set(hosts))

    def without(self, hosts: Iterable[int]) -> Relays:
        """The same where these join no more: what they would have passed on comes from its mote."""
        gone = set(hosts)
        return Relays({host: one for host, one in self.of.items() if host not in gone and one[0] not in gone})


#: Of a way with the rows that go by it: what it costs.
WayCost = Callable[[Way, Mapping[int, int]], float]


def relayed(
    needed: Mapping[Way, int],
    cost: WayCost,
    most: int,
    allowed: Callable[[Relays], bool] = lambda _: True,
) -> Relays:
    """Who passes whose rows on where that costs less than ways of their own, as far as one change after the other finds that. Only those
    are passed on that a host needs itself. ``most``: motes whose rows a way between hosts carries; ``allowed``: what may be."""
    found = Relays()
    hosts = sorted({host for _, host in needed})
    refused: set[tuple[int, int, frozenset[int]]] = set()
    while True:
        best: tuple[float, int, int, frozenset[int]] | None = None
        for host in hosts:
            if host in found.of:
                continue
            for by in hosts:
                saved, whose = _saved(found, needed, cost, most, by, host)
                if saved > (best[0] if best else 1e-12) and (by, host, whose) not in refused:
                    best = saved, by, host, whose
        if best is None:
            return found
        _, by, host, whose = best
        tried = Relays({**found.of, host: (by, whose)})
        if allowed(tried):
            found = tried
        else:
            refused.add((by, host, whose))


def _saved(
    found: Relays, needed: Mapping[Way, int], cost: WayCost, most: int, by: int, host: int
) -> tuple[float, frozenset[int]]:
    """What it saves that one host passes rows on to another, and whose."""
    if by == host or host in found.before(by) or depth(found, by) + 1 + height(found, host) > PASSED_ON:
        return 0.0, frozenset()
    shared = [
        producer
        for producer, to in needed
        if to == host and producer != by and not needed[producer, host] & ~needed.get((producer, by), 0)
    ]
    alone = {producer: cost((producer, host), {producer: needed[producer, host]}) for producer in shared}
    own = {by: needed[by, host]} if (by, host) in needed else {}
    shared.sort(key=lambda producer: (-alone[producer], producer))
    before = cost((by, host), own) if own else 0.0
    best, whose = 0.0, frozenset[int]()
    for count in range(1, min(most - len(own), len(shared)) + 1):
        carried = {**own, **{producer: needed[producer, host] for producer in shared[:count]}}
        saved = sum(alone[producer] for producer in shared[:count]) + before - cost((by, host), carried)
        if saved > best:
            best, whose = saved, frozenset(shared[:count])
    return best, whose


def depth(found: Relays, host: int) -> int:
    return len(found.before(host))


def height(found: Relays, host: int) -> int:
    """How often rows are passed on behind it."""
    below = [other for other, (by, _) in found.of.items() if by == host]
    height = 0
    while below:
        height += 1
        below = [other for other, (by, _) in found.of.items() if by in below]
    return height
