"""Who hears whom in a run: the radio model's links, without those that are cut, with their bursts of losses."""

from __future__ import annotations

import math

import numpy as np

from skerry_testbed import radio
from skerry_testbed.core import World
from skerry_testbed.description import Mote, Radio
from skerry_testbed.duration import seconds

#: dB, removes a link.
NO_GAIN = -1000.0

Pair = tuple[int, int]


class Links:
    """Who hears whom, by mote index: the radio model's links without those that are cut."""

    def __init__(self, world: World, model: Radio, motes: list[Mote], seed: int) -> None:
        self._world, self._model, self._motes, self._seed = world, model, motes, seed
        self._bursts = _bursts(model, motes)
        self._cut: set[Pair] = set()
        self._links = self._compute()
        self._apply(set(self._links))

    def _compute(self) -> radio.Links:
        # The same seed each time: a mote that moves leaves the shadowing of all others as it was.
        return radio.links(self._model, self._motes, np.random.default_rng(self._seed))

    def reception(self, sender: int, receiver: int) -> float:
        """Share of frames of 100 bytes that arrive, without bursts and interference."""
        gain, probability = self._links.get((sender, receiver), (NO_GAIN, math.nan))
        if self.gain(sender, receiver) <= NO_GAIN:
            return 0.0
        return radio.reception(gain, probability, self._model.noise_dbm, self._motes[receiver].board)

    def gain(self, sender: int, receiver: int) -> float:
        """Received minus sent power in dB; -1000: they do not hear each other."""
        pair = (sender, receiver)
        return NO_GAIN if pair in self._cut or pair not in self._links else self._links[pair][0]

    def cut(self, pairs: set[Pair]) -> None:
        """Take links out."""
        self._cut |= pairs
        self._apply(pairs)

    def restore(self, pairs: set[Pair]) -> None:
        """Undo :meth:`cut`."""
        self._cut -= pairs
        self._apply(pairs)

    def moved(self, motes: set[int]) -> None:
        """Positions of these have changed; links that are cut stay so."""
        self._links = self._compute()
        others = range(len(self._motes))
        self._apply(both_ways({(mote, other) for mote in motes for other in others if mote != other}))

    def _apply(self, pairs: set[Pair]) -> None:
        for pair in sorted(pairs):
            _, reception = self._links.get(pair, (NO_GAIN, math.nan))
            gain = self.gain(*pair)
            self._world.set_link(*pair, gain, reception)
            bursts = self._bursts.get(pair, self._bursts.get(None))
            if bursts is not None and gain > NO_GAIN:
                self._world.set_bursts(*pair, *bursts, self._burst_seed(pair))

    def _burst_seed(self, pair: Pair) -> int:
        """From the pair alone, so that a link that comes back is bad when it would have been."""
        symmetric = (
            pair not in self._bursts and self._model.bursts is not None and self._model.bursts.symmetric
        )
        key = sorted(pair) if symmetric else pair
        return int(np.random.default_rng((self._seed, 0xB5, *key)).integers(1 << 63))


def both_ways(pairs: set[Pair]) -> set[Pair]:
    """These pairs, and each the other way round."""
    return pairs | {(b, a) for a, b in pairs}


def _bursts(model: Radio, motes: list[Mote]) -> dict[Pair | None, tuple[float, float, float]]:
    """Mean good and bad times in s and reception while bad: by link, and under None for all others."""
    index = {mote.id: i for i, mote in enumerate(motes)}
    found: dict[Pair | None, tuple[float, float, float]] = {}
    if model.bursts is not None:
        found[None] = seconds(model.bursts.good), seconds(model.bursts.bad), model.bursts.reception
    for link in model.link_bursts:
        found[index[link.mote], index[link.to]] = seconds(link.good), seconds(link.bad), link.reception
    return found
