"""How often motes send rows, and how often two rows that meet are an answer (Mihaylov et al. 2010, appendix D)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: The mote of s, the mote of t.
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Estimates:
    """Shares from 0 to 1; ``window`` in rows: w. Without estimates all rows pass and all that meet are answers."""

    s: float = 1.0
    t: float = 1.0
    pair: float = 1.0
    window: float = 1.0

    def __post_init__(self) -> None:
        for name in ("s", "t", "pair"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise ValueError(f"estimate of {name} is {share:g}: a share is from 0 to 1, as 10 % is 0.1")
        if not self.window > 0:
            raise ValueError(f"a window of {self.window:g} rows: it holds more than none")

    @property
    def results(self) -> float:
        """Answers of a pair in each epoch: a row of either meets the other's window."""
        return (self.s + self.t) * self.window * self.pair


@dataclass(frozen=True)
class Rates:
    """Estimates that may differ from mote to mote and from pair to pair; what is not said is as in ``usual``."""

    usual: Estimates = field(default_factory=Estimates)
    s: Mapping[int, float] = field(default_factory=dict)
    t: Mapping[int, float] = field(default_factory=dict)
    pairs: Mapping[Pair, float] = field(default_factory=dict)

    def of(self, pair: Pair) -> Estimates:
        """Of one pair."""
        usual = self.usual
        if not (self.s or self.t or self.pairs):
            return usual
        return Estimates(
            self.s.get(pair[0], usual.s), self.t.get(pair[1], usual.t), self.pairs.get(pair, usual.pair), usual.window
        )  # fmt: skip

    def sends(self, mote: int, roles: frozenset[str]) -> float:
        """Rows that a mote sends in each epoch: one that passes as s and as t is sent once."""
        silent = 1.0
        if "s" in roles:
            silent *= 1 - self.s.get(mote, self.usual.s)
        if "t" in roles:
            silent *= 1 - self.t.get(mote, self.usual.t)
        return 1 - silent
