"""Selectivities that a join mote counts, and when they differ so much from what placed it that a pair is placed anew (section 6)."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.joins.placement.estimates import Estimates

#: A pair is placed anew where an estimate is off by more than that part of it.
OFF = 1 / 3
#: Epochs after which a join mote looks at what it has counted, and begins anew.
EPOCHS = 50


@dataclass
class Counted:
    """Of one pair, since the join mote has it or last looked."""

    epochs: int = 0
    s: int = 0
    t: int = 0
    results: int = 0

    def count(self, s: int, t: int, results: int, epochs: int = 1) -> None:
        """Rows that came in so many epochs, and answers."""
        self.epochs += epochs
        self.s += s
        self.t += t
        self.results += results

    def estimates(self, before: Estimates) -> Estimates:
        """σ_s = N_s / T, σ_t = N_t / T, σ_st = N_st / (w (N_s + N_t)); as before where nothing could be counted."""
        if not self.epochs:
            return before
        met = before.window * (self.s + self.t)
        pair = min(1.0, self.results / met) if met else before.pair
        return Estimates(min(1.0, self.s / self.epochs), min(1.0, self.t / self.epochs), pair, before.window)

    def clear(self) -> None:
        """Begin anew, so that it is of a local span of time."""
        self.epochs = self.s = self.t = self.results = 0


def differs(counted: float, before: float) -> bool:
    """Whether one is off by more than :data:`OFF` of what it was."""
    return abs(counted - before) > OFF * before


def placed_anew(counted: Estimates, before: Estimates) -> bool:
    """Whether the pair's place is to be chosen again."""
    return any(differs(getattr(counted, name), getattr(before, name)) for name in ("s", "t", "pair"))
