"""How few motes a semantic routing tree could ask: figure 9 of TinyDB 2005 without radio, and with parents that nobody could choose alone.

The grids of :mod:`bench.network.srt_participants`. Parents are strictly closer to the root, as in the firmware, or may stand as close as
their children.
Simulated annealing moves one mote after the other to another parent, knowing all values and all ranges, which no mote does: what
it ends with tells what is left to be gained by any policy. Averages are over all ranges of each size, reckoned and not drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from bench.network.srt_participants import SIZES, Interval, placed
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Column

#: Steps of the annealing for each mote.
STEPS = 200
#: Motes more at which a move is taken one time in e, at the beginning.
HEAT = 2.0
PLACEMENTS = ("random", "geographic")
BEST = 3
NAMES = (
    "random, one interval",
    "random",
    "closest",
    "best tree found",
    "parents as close, too",
    "in the range",
)


@dataclass(frozen=True)
class Options(SeedOptions):
    side: int = option(20, "motes along a side of the grid")


def united(parts: list[Interval], most: int) -> list[Interval]:
    """At most so many intervals that hold these: those with the least between them become one."""
    found: list[Interval] = []
    for low, high in sorted(parts):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    while len(found) > most:
        near = min(range(len(found) - 1), key=lambda i: found[i + 1][0] - found[i][1])
        found[near : near + 2] = [(found[near][0], found[near + 1][1])]
    return found


class Tree:
    """A tree over a grid whose motes' values are their numbers; ``total``: motes that hold a query, on average."""

    def __init__(self, root: int, levels: dict[int, int], parents: dict[int, int], intervals: int) -> None:
        self._root, self._intervals, self._count = root, intervals, len(levels)
        self.parents = dict(parents)
        self._children: dict[int, set[int]] = {mote: set() for mote in levels}
        for mote, parent in parents.items():
            self._children[parent].add(mote)
        self._told: dict[int, list[Interval]] = {}
        self._share: dict[int, float] = {}
        for mote in sorted(levels, key=lambda n: -levels[n]):
            self._reckon(mote)
        self.total = sum(share for mote, share in self._share.items() if mote != root)

    def _reckon(self, mote: int) -> None:
        """What it tells, and how often it holds a query: when its own value, or what a child tells, meets the range."""
        below = [part for child in self._children[mote] for part in self._told[child]]
        asked = united([*below, (mote, mote)], self._count)
        self._told[mote] = united(asked, self._intervals)
        self._share[mote] = sum(self._met(asked, self._count * size / 100) for size in SIZES) / len(SIZES)

    def _met(self, parts: list[Interval], width: float) -> float:
        """The share of ranges of a width that meet one of these intervals."""
        starts, reached, sought = self._count - width, 0.0, 0.0
        for low, high in parts:
            begin, end = max(low - width, reached), min(high + 1.0, starts)
            sought += max(0.0, end - begin)
            reached = max(reached, end)
        return sought / starts

    def _path(self, mote: int) -> list[int]:
        """From a mote to the root, both included."""
        path = [mote]
        while path[-1] != self._root:
            path.append(self.parents[path[-1]])
        return path

    def below(self, mote: int, other: int) -> bool:
        """Whether ``other`` is the mote, or below it."""
        return mote in self._path(other)

    def move(self, mote: int, parent: int, accept: Callable[[float], bool]) -> None:
        """Give a mote another parent if the motes more that hold queries then, less than none mostly, are accepted."""
        before: dict[int, tuple[list[Interval], float]] = {}
        former = self.parents[mote]
        self._hang(mote, parent)
        for end in (former, parent):
            for at in self._path(end):
                before.setdefault(at, (self._told[at], self._share[at]))
                self._reckon(at)
        more = sum(self._share[at] - share for at, (_, share) in before.items() if at != self._root)
        if accept(more):
            self.total += more
            return
        self._hang(mote, former)
        for at, (told, share) in before.items():
            self._told[at], self._share[at] = told, share

    def _hang(self, mote: int, parent: int) -> None:
        self._children[self.parents[mote]].discard(mote)
        self._children[parent].add(mote)
        self.parents[mote] = parent


def anneal(tree: Tree, choices: dict[int, list[int]], rng: random.Random) -> float:
    """Motes that hold a query once all parents have been moved about; ``choices``: for each mote."""
    motes, steps = sorted(choices), STEPS * len(choices)
    for step in range(steps):
        mote = rng.choice(motes)
        parent = rng.choice(choices[mote])
        if parent == tree.parents[mote] or tree.below(mote, parent):
            continue
        heat = HEAT * (1 - step / steps)
        tree.move(mote, parent, lambda more, heat=heat: more < 0 or rng.random() < math.exp(-more / heat))  # type: ignore[misc]
    return tree.total


def bounds(side: int, placement: str, seed: int) -> list[float]:
    """Of a grid: random parents with one interval and with two, closest ones, the best found with parents closer to the root, and with
    those as close; motes in the range."""
    network = placed(side, placement, seed)
    at = {mote.id: (mote.x, mote.y) for mote in network.mote}
    (root,) = (mote.id for mote in network.mote if mote.root)
    spacing = max(x for x, _ in at.values()) / (side - 1)
    hops = {
        (a, b): round(max(abs(at[a][0] - at[b][0]), abs(at[a][1] - at[b][1])) / spacing)
        for a in at
        for b in at
    }
    levels = {mote: hops[root, mote] for mote in at}
    near = {mote: [other for other in at if hops[mote, other] == 1] for mote in at if mote != root}
    closer = {mote: [n for n in others if levels[n] < levels[mote]] for mote, others in near.items()}
    as_close = {mote: [n for n in others if levels[n] <= levels[mote]] for mote, others in near.items()}
    rng = random.Random(seed)
    by_chance = {mote: rng.choice(others) for mote, others in closer.items()}
    closest = {mote: min(others, key=lambda n, own=mote: abs(n - own)) for mote, others in closer.items()}  # type: ignore[misc]
    return [
        Tree(root, levels, by_chance, 1).total,
        Tree(root, levels, by_chance, 2).total,
        Tree(root, levels, closest, 2).total,
        anneal(Tree(root, levels, closest, 2), closer, rng),
        anneal(Tree(root, levels, closest, 2), as_close, rng),
        Tree(root, levels, dict.fromkeys(near, root), 2).total,
    ]


def measure(options: Options, recorder: Recorder) -> None:
    """Both placements."""
    columns = [Column(name, form=".0f") for name in NAMES]
    table = recorder.table("motes", [Column("placement"), *columns], title="Motes that hold a query")
    against = recorder.table(
        "gain", [Column("placement"), *(Column(name, "%", "+.0f") for name in NAMES)], title="The best tree found against it"
    )  # fmt: skip
    for placement in recorder.steps(PLACEMENTS):
        found = bounds(options.side, placement, options.seed)
        table.row(placement, *found)
        least = found[BEST]
        shares = [100 * (least / other - 1) for other in found]
        against.row(placement, *(None if place == BEST else share for place, share in enumerate(shares)))
        recorder.figure(
            f"motes that hold range queries, the best tree found against random, values {placement}",
            shares[1],
            "%",
            "+.0f",
            main=placement == "random",
        )


BENCHMARK = Benchmark(measure, quick=Options(side=6), minutes=2)
