"""Selectivities that are counted while a join runs, and when they differ so much from what placed it that pairs are placed anew (Mihaylov
et al. 2010, section 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from skerry.joins.placement.estimates import Estimates, Pair, Rates

#: Pairs are placed anew where an estimate is off by more than that part of it.
OFF = 1 / 3
#: Epochs that are counted before anything is judged by them.
EPOCHS = 50
#: … and by more standard deviations than this of what is counted: were rows independent, chance alone would do that 3 times in 1,000.
SURE = 3.0
#: What pairs have in common weighs as much as so many rows that have met: of few rows a pair's own share says little.
SHARED_ROWS = 30

#: A mote, and as what its rows pass: "s" or "t".
Role = tuple[int, str]


@dataclass(frozen=True)
class Counted:
    """Of one pair: rows that have come in so many epochs, and answers."""

    epochs: int = 0
    s: float = 0
    t: float = 0
    results: int = 0

    def met(self, window: float) -> float:
        """Rows that have met."""
        return window * (self.s + self.t)

    def estimates(self, before: Estimates) -> Estimates:
        """σ_s = N_s / T, σ_t = N_t / T, σ_st = N_st / (w (N_s + N_t)); as before where nothing could be counted."""
        if not self.epochs:
            return before
        met = self.met(before.window)
        pair = min(1.0, self.results / met) if met else before.pair
        return Estimates(min(1.0, self.s / self.epochs), min(1.0, self.t / self.epochs), pair, before.window)


@dataclass(frozen=True)
class Counts:
    """Of all pairs of a query in so many epochs. ``rows``: of motes all of whose rows come to who counts; ``answers``: by pair, where there
    are any; ``told``: of other motes, how many rows they have had in how many epochs."""

    epochs: int
    pairs: Sequence[Pair]
    rows: Mapping[Role, int]
    answers: Mapping[Pair, int]
    told: Mapping[Role, tuple[int, int]] = field(default_factory=dict)

    def silent(self, aliases: tuple[str, str]) -> dict[Pair, str]:
        """Why a pair has no answers, of those that have none."""
        return {pair: self._why(pair, aliases) for pair in self.pairs if not self.answers.get(pair)}

    def _why(self, pair: Pair, aliases: tuple[str, str]) -> str:
        for mote, role, alias in zip(pair, "st", aliases, strict=True):
            had, of = self.told.get((mote, role), (self.rows.get((mote, role)), self.epochs))
            if had == 0 and of:
                return f"no row of mote {mote} has passed as {alias} in {of} epochs"
        return f"no two rows have matched in {self.epochs} epochs"


@dataclass(frozen=True)
class Learnt:
    """What counts say. ``off``: of "s", "t" and "pair" those that were assumed to be other shares, all in all or somewhere: what was
    assumed of all motes on average, and what was counted."""

    rates: Rates
    off: Mapping[str, tuple[float, float]]


def differs(counted: float, before: float) -> bool:
    """Whether one is off by more than :data:`OFF` of what it was."""
    return abs(counted - before) > OFF * before


def placed_anew(counted: Estimates, before: Estimates) -> bool:
    """Whether the pair's place is to be chosen again."""
    return any(differs(getattr(counted, name), getattr(before, name)) for name in ("s", "t", "pair"))


def is_sure(counted: float, before: float, trials: float) -> bool:
    """Whether chance alone hardly makes one of the other in so many trials."""
    if trials <= 0:
        return False
    spread = max(share * (1 - share) for share in (counted, before))
    return abs(counted - before) > SURE * sqrt(spread / trials)


def learnt(counts: Counts, before: Rates) -> Learnt:
    """What was counted, and what was assumed before that it is."""
    epochs, window = counts.epochs, before.usual.window
    rows: dict[Role, float] = {}
    #: What was counted, not assumed: in how many epochs.
    known: dict[Role, int] = {}
    for s, t in counts.pairs:
        for role, share in (((s, "s"), before.of((s, t)).s), ((t, "t"), before.of((s, t)).t)):
            if role in rows:
                continue
            # Rows that go to hosts are as many as they were, until their motes say something else.
            had, of = counts.told.get(role, (counts.rows.get(role), epochs))
            if had is None or not of:
                rows[role] = share * epochs
            else:
                rows[role], known[role] = had * epochs / of, of
    pairs = {
        (s, t): Counted(epochs, rows[s, "s"], rows[t, "t"], counts.answers.get((s, t), 0))
        for s, t in counts.pairs
    }
    met = sum(one.met(window) for one in pairs.values())
    answers = sum(one.results for one in pairs.values())
    shared = min(1.0, answers / met) if met else before.usual.pair
    found = Rates(
        Estimates(_mean(rows, "s", epochs, before), _mean(rows, "t", epochs, before), shared, window),
        {mote: min(1.0, had / epochs) for (mote, name), had in rows.items() if name == "s"},
        {mote: min(1.0, had / epochs) for (mote, name), had in rows.items() if name == "t"},
        {
            pair: min(1.0, (one.results + SHARED_ROWS * shared) / (one.met(window) + SHARED_ROWS))
            for pair, one in pairs.items()
        },
    )
    return Learnt(found, _off(pairs, known, before))


def _mean(rows: Mapping[Role, float], name: str, epochs: int, before: Rates) -> float:
    of = [had for (_, role), had in rows.items() if role == name]
    return min(1.0, sum(of) / len(of) / epochs) if of else getattr(before.usual, name)


def _off(
    pairs: Mapping[Pair, Counted], known: Mapping[Role, int], before: Rates
) -> dict[str, tuple[float, float]]:
    """Each share is looked at for all together, and then for each mote or pair."""
    looked: dict[str, dict[object, tuple[float, float, float]]] = {"s": {}, "t": {}, "pair": {}}
    for (s, t), one in pairs.items():
        was, window = before.of((s, t)), before.usual.window
        for role, had, assumed in (((s, "s"), one.s, was.s), ((t, "t"), one.t, was.t)):
            if role in known:
                looked[role[1]][role] = had * known[role] / one.epochs, known[role], assumed
        looked["pair"][s, t] = one.results, one.met(window), was.pair
    found = {}
    for name, those in looked.items():
        whole = _whole(those.values())
        if whole is not None and any(_is_off(*one) for one in (whole, *those.values())):
            times, trials, assumed = whole
            found[name] = assumed, min(1.0, times / trials)
    return found


def _whole(
    those: Iterable[tuple[float, float, float]],
) -> tuple[float, float, float] | None:
    """How often of how many, and the mean of what was assumed; None: nothing could be counted."""
    times = trials = expected = 0.0
    for had, of, assumed in those:
        times, trials, expected = times + had, trials + of, expected + of * assumed
    return (times, trials, expected / trials) if trials else None


def _is_off(times: float, trials: float, assumed: float) -> bool:
    share = min(1.0, times / trials) if trials else assumed
    return differs(share, assumed) and is_sure(share, assumed, trials)
