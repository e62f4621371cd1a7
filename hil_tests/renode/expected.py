"""What a network description lets one expect of its rows, whoever emulates the motes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from skerry_testbed import environment, radio
from skerry_testbed.network import Network
from skerry_testbed.runner import crystals

#: What the analogue board resolves (13 bits of 1.19 V), in SI.
RESOLUTION = {"temp": 0.03, "light": 1.0}
#: A reading counts when it was true this long in s before or after an epoch's start: conversion, and clocks that differ.
WINDOW_S = 1.5


@dataclass
class Expected:
    """Readings and levels of a network whose root starts at 0, so that network time is virtual time."""

    network: Network
    _seen: list[tuple[float, dict[tuple[int, str], float]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.network.seed)
        crystals(self.network, rng)  # the environment's draws follow those of the crystals
        self._source = environment.build(self.network.environment, self.network.mote, rng)

    def hops(self) -> dict[int, int]:
        """Least hops of each mote to the root, over links that exist in both directions."""
        found = radio.links(self.network.radio, self.network.mote, np.random.default_rng(self.network.seed))
        ids = [mote.id for mote in self.network.mote]
        level = {mote.id: 0 for mote in self.network.mote if mote.root}
        while True:
            reached = {
                ids[b]: level[ids[a]] + 1
                for a, b in found
                if (b, a) in found and ids[a] in level and ids[b] not in level
            }
            if not reached:
                return level
            level.update(reached)

    def _until(self, time_s: float) -> None:
        while not self._seen or self._seen[-1][0] < time_s:
            now = len(self._seen) * self._source.step_s
            last = dict(self._seen[-1][1]) if self._seen else {}
            for index, attribute, value in self._source.readings(now):
                last[self.network.mote[index].id, attribute] = value
            self._seen.append((now, last))

    def wrong(self, node: int, attribute: str, value: float | None, time_s: float) -> str | None:
        """Why a row's value cannot be, or nothing."""
        self._until(time_s + WINDOW_S)
        near = [
            seen.get((node, attribute), math.nan)
            for at, seen in self._seen
            if time_s - WINDOW_S - self._source.step_s <= at <= time_s + WINDOW_S
        ]
        if value is None:
            right = any(math.isnan(true) for true in near)
        else:
            right = any(abs(true - value) <= RESOLUTION[attribute] for true in near)
        return None if right else f"mote {node}: {attribute} = {value} at {time_s:g} s: the sensor saw {near}"
