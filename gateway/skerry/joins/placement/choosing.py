"""Where groups of pairs are joined: each as a whole at the base or in the network, by what that costs all (Mihaylov et al. 2010, 5.2).

The paper's coordinator adds up ΔC_p of its group's producers. Here the gateway knows the tree and what rows share on their way up it, and
reckons the sum itself: what all motes would take with the group in the network, less what they would with it at the base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from skerry.joins.placement.estimates import Pair
from skerry.joins.placement.groups import Group, groups_of

#: Of all pairs of a network: what it costs to join them there; and for how many rows, ways and hosts there is no room then.
Cost = Callable[[Mapping[Pair, int]], float]
Over = Callable[[Mapping[Pair, int]], int]
Places = dict[Pair, int]

#: All placings of a group are tried where there are no more than these.
ALL_TRIED = 400
#: Placings that are reckoned for a network at most, times pairs: what that takes grows with the number of pairs.
_RECKONED = 20_000
#: More than any placing costs for which there is room.
_NO_ROOM = 1e9


@dataclass(frozen=True)
class Decided:
    """A group and its decision; ``difference``: what it costs more in the network than at the base, below 0 where that is less."""

    group: Group
    difference: float


def transitive_groups(pairs: Sequence[Pair]) -> list[Group]:
    """Complete graphs where all motes of a group are pairs with each other, else complete bipartite ones, else what hangs together."""
    found: list[Group] = []
    for whole in groups_of(pairs, symmetric=True):
        found += [whole] if whole.complete else groups_of(whole.pairs)
    return found


class Choosing:
    """``candidates``: by pair, motes that may join it, the best one by itself first; the root is no candidate. ``forced``: none goes to the
    root that has a candidate. ``over``: what is dearer than anything else."""

    def __init__(
        self,
        candidates: Mapping[Pair, Sequence[int]],
        root: int,
        cost: Cost,
        over: Over = lambda _: 0,
        *,
        forced: bool = False,
    ) -> None:
        self._candidates, self._root, self._forced = candidates, root, forced
        self._cost, self._over = cost, over
        self._left = _RECKONED // max(1, len(candidates))
        own = {pair: next(iter(those), root) for pair, those in candidates.items()}
        self._at: Places = dict(own) if forced else dict.fromkeys(candidates, root)
        self._least = self._reckoned(self._at)
        self._network: dict[Group, Places] = {}
        if not forced:
            self._try(own)

    def chosen(self, groups: Sequence[Group]) -> tuple[Places, list[Decided]]:
        """Places of all pairs, of which none costs less by another of those that were tried; never more than all at the root, unless they
        are forced."""
        for group in groups:
            self._place(group)
        for group in groups:
            self._refine(group)
        there = [group for group in groups if any(self._candidates[pair] for pair in group.pairs)]
        return self._at, [self._decided(group) for group in there]

    def _place(self, group: Group) -> None:
        """The group as a whole: at the root, each pair at its own best mote, or all at one; where it is small, in all ways."""
        hosted = [pair for pair in group.pairs if self._candidates[pair]]
        if not hosted:
            return
        options: list[Places] = [{pair: self._candidates[pair][0] for pair in hosted}]
        union = list(dict.fromkeys(mote for pair in hosted for mote in self._candidates[pair]))
        anywhere = [*union, self._root] if not self._forced else union
        for places in ([anywhere] * len(hosted), [self._places(pair) for pair in hosted]):
            if prod(map(len, places)) <= min(ALL_TRIED, self._left):
                options += [dict(zip(hosted, at, strict=True)) for at in product(*places)]
                break
        else:
            options += [dict.fromkeys(hosted, mote) for mote in union]
        if not self._forced:
            self._try(dict.fromkeys(hosted, self._root))
        best: tuple[float, Places] | None = None
        for option in options:
            if self._left <= 0:
                break
            cost = self._try(option)
            if self._root not in option.values() and (best is None or cost < best[0]):
                best = cost, option
        if best is not None:
            self._network[group] = best[1]

    def _refine(self, group: Group) -> None:
        """Each pair of it by itself, until none moves."""
        moved = True
        while moved and self._left > 0:
            before = self._least
            for pair in group.pairs:
                used = {self._at[other] for other in group.pairs}
                for mote in dict.fromkeys((*self._places(pair), *sorted(used - {self._root}))):
                    if mote != self._at[pair] and self._left > 0:
                        self._try({pair: mote})
            moved = self._least < before

    def _places(self, pair: Pair) -> list[int]:
        candidates = list(self._candidates[pair])
        return candidates if self._forced and candidates else [*candidates, self._root]

    def _try(self, change: Mapping[Pair, int]) -> float:
        """Takes what costs less."""
        self._left -= 1
        tried = {**self._at, **change}
        cost = self._reckoned(tried)
        if cost < self._least:
            self._at, self._least = tried, cost
        return cost

    def _reckoned(self, places: Places) -> float:
        return self._cost(places) + _NO_ROOM * self._over(places)

    def _decided(self, group: Group) -> Decided:
        """With all others where they are: the best placing in the network that is known, and the base."""
        at = {pair: self._at[pair] for pair in group.pairs}
        there = at if self._root not in at.values() else self._network.get(group, at)
        base = dict.fromkeys(group.pairs, self._root)
        return Decided(group, self._cost({**self._at, **there}) - self._cost({**self._at, **base}))
