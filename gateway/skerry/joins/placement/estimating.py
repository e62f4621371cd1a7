"""What it costs to join pairs at motes to which rows go by ways, reckoned often: the same as of a plan
(:mod:`skerry.joins.placement.plans`), with what many placings have in common kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skerry.joins.placement.branching import Near, branched
from skerry.joins.placement.estimates import Pair, Rates
from skerry.joins.placement.plans import ROLES, listened, needed
from skerry.joins.placement.prices import Prices
from skerry.joins.placement.relays import Relays, relayed
from skerry.joins.placement.trees import Link, Tree, links_of

Allowed = Callable[[Relays, Mapping[Link, int]], bool]


class Estimate:
    """Of pairs in one tree. What it has reckoned it keeps. ``most``: motes whose rows a way between hosts carries; 0: they pass none on.
    ``allowed``: whether they may so, by who sends rows to whom; ``near``: who may hear whom."""

    def __init__(
        self,
        tree: Tree,
        rates: Rates,
        prices: Prices,
        most: int = 0,
        allowed: Allowed = lambda _, __: True,
        near: Near = lambda _, __: False,
    ) -> None:
        self.tree, self._rates, self._prices, self._most = tree, rates, prices, most
        self._allowed, self._near = allowed, near
        self._listened = listened(prices, tree)
        self._sends: dict[tuple[int, int], float] = {}
        self._hops: dict[Link, int] = {}
        self._up: dict[int, tuple[Link, ...]] = {}
        self._results: dict[Pair, float] = {}

    def cost(self, places: Mapping[Pair, int]) -> float:
        """Of all motes in a sample period; pairs at the root are the gateway's, to which rows climb."""
        root, base, results = self.tree.root, dict[int, int](), dict[int, float]()
        hosted = {pair: host for pair, host in places.items() if host != root}
        for pair, host in places.items():
            if host == root:
                for mote, bit in zip(pair, (1, 2), strict=True):
                    base[mote] = base.get(mote, 0) | bit
            else:
                results[host] = results.get(host, 0.0) + self._result(pair)
        sent = needed(hosted)
        ways = self.relays(sent).ways(sent)
        total = self._listened + sum(self.of_way(way, carried) for way, carried in ways.items())
        return total + self._climbing(base, results)

    def relays(self, sent: Mapping[Link, int]) -> Relays:
        """Who passes whose rows on; ``sent``: by producer and host as what they pass."""
        producers = [mote for mote, _ in sent]
        if self._most == 0 or len(producers) == len(set(producers)):
            return Relays()
        return relayed(sent, self.of_way, self._most, lambda relays: self._allowed(relays, sent))

    def branched(self, sent: Mapping[Link, int]) -> Relays:
        """The same, with motes that join none; it takes longer than to reckon what many placings cost."""
        if self._most == 0:
            return Relays()
        return branched(
            self.relays(sent),
            sent,
            self.of_way,
            self._most,
            self.tree,
            lambda relays: self._allowed(relays, sent),
            self._near,
        )

    def of_way(self, way: Link, carried: Mapping[int, int]) -> float:
        """With the rows that go by it, by mote and as what they pass."""
        rate = sum(self.sends(mote, bits) for mote, bits in carried.items())
        return self.hops(*way) * self._prices.by_way(rate)

    def _climbing(self, base: Mapping[int, int], results: Mapping[int, float]) -> float:
        """Rows and answers up the tree, where they share frames."""
        prices, rows, answers = self._prices, dict[Link, float](), dict[Link, float]()
        for mote, bits in base.items():
            rate = self.sends(mote, bits)
            for link in self._links(mote):
                rows[link] = rows.get(link, 0.0) + rate
        for host, rate in results.items():
            for link in self._links(host):
                answers[link] = answers.get(link, 0.0) + rate
        total = 0.0
        for link in rows.keys() | answers.keys():
            row, answer = rows.get(link, 0.0), answers.get(link, 0.0)
            number = row + answer
            total += row * prices.up(prices.row, number) + answer * prices.up(prices.result, number)
        return total

    def sends(self, mote: int, bits: int) -> float:
        """Rows of a mote in an epoch; ``bits``: 1 as s, 2 as t."""
        found = self._sends.get((mote, bits))
        if found is None:
            found = self._sends[mote, bits] = self._rates.sends(mote, ROLES[bits])
        return found

    def hops(self, one: int, other: int) -> int:
        """Between two motes, by the tree."""
        found = self._hops.get((one, other))
        if found is None:
            found = self._hops[one, other] = len(links_of(self.tree.between(one, other)))
        return found

    def _result(self, pair: Pair) -> float:
        found = self._results.get(pair)
        if found is None:
            found = self._results[pair] = self._rates.of(pair).results
        return found

    def _links(self, mote: int) -> tuple[Link, ...]:
        found = self._up.get(mote)
        if found is None:
            found = self._up[mote] = links_of(self.tree.way(mote))
        return found
