"""What changes while a run goes on, besides what sensors see: where motes are, how warm their crystals are, what else sends."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skerry_testbed import radio
from skerry_testbed.core import World
from skerry_testbed.description import Crystals, Duration, Interference, Mote, Network, Radio
from skerry_testbed.duration import seconds
from skerry_testbed.links import Links

#: s of virtual time between two looks at positions and temperatures.
STEP_S = 1.0
#: ppm; crystals are set anew when they have changed by more.
PPM_STEP = 0.005
#: m; motes that have moved by less since the last step stay.
METRE_STEP = 0.001
FOREVER_NS = (1 << 64) - 1
NS = 1_000_000_000

Curve = list[tuple[Duration, float]]


def value_at(curve: Curve, now_s: float) -> float:
    """Linear between the curve's points, constant before the first and after the last."""
    return float(np.interp(now_s, [seconds(at) for at, _ in curve], [value for _, value in curve]))


class Mobility:
    """Motes with a path go along it."""

    def __init__(self, motes: list[Mote], links: Links) -> None:
        self._motes, self._links = motes, links
        self._paths: dict[int, tuple[Curve, Curve]] = {}
        for index, mote in enumerate(motes):
            if mote.path:
                points = [(0, mote.x, mote.y), *mote.path] if seconds(mote.path[0][0]) > 0 else mote.path
                self._paths[index] = [(at, x) for at, x, _ in points], [(at, y) for at, _, y in points]

    def step(self, now_s: float) -> bool:
        """Move them to where they are now; whether anybody has moved."""
        moved = set()
        for index, (along_x, along_y) in self._paths.items():
            mote = self._motes[index]
            x, y = value_at(along_x, now_s), value_at(along_y, now_s)
            if math.hypot(x - mote.x, y - mote.y) > METRE_STEP:
                mote.x, mote.y = x, y
                moved.add(index)
        if moved:
            self._links.moved(moved)
        return bool(moved)


class Drift:
    """Crystals: each mote's own error, and what temperature adds to it."""

    def __init__(
        self, world: World, motes: list[Mote], errors: Sequence[float], crystal: Crystals | None
    ) -> None:
        self._world, self._motes, self._crystal = world, motes, crystal
        self._errors = list(errors)
        self._set = list(errors)
        self._felt: dict[int, float] = {}

    def feel(self, mote: int, celsius: float) -> None:
        """The environment's temperature at a mote; NaN, its sensor's failure, says nothing."""
        if math.isfinite(celsius):
            self._felt[mote] = celsius

    def set_error(self, mote: int, ppm: float) -> None:
        """The mote's own error from now on, at the turnover temperature."""
        shift = self._set[mote] - self._errors[mote]
        self._errors[mote] = ppm
        self._apply(mote, ppm + shift)

    def _temperature(self, mote: int, now_s: float) -> float | None:
        assert self._crystal is not None
        curve = self._motes[mote].temperature or self._crystal.temperature
        return self._felt.get(mote) if isinstance(curve, str) else value_at(curve, now_s)

    def step(self, now_s: float) -> None:
        """Follow the temperature."""
        if self._crystal is None:
            return
        for mote, error in enumerate(self._errors):
            celsius = self._temperature(mote, now_s)
            if celsius is not None:
                self._apply(mote, error + self._crystal.parabola * (celsius - self._crystal.turnover) ** 2)

    def _apply(self, mote: int, ppm: float) -> None:
        if abs(ppm - self._set[mote]) > PPM_STEP:
            self._world.set_clock(mote, ppm)
            self._set[mote] = ppm


class Interferers:
    """The sources of a description, as strong at each mote as distance makes them."""

    def __init__(self, world: World, network: Network, motes: list[Mote]) -> None:
        self._world, self._motes, self._model = world, motes, network.radio
        rng = np.random.default_rng((network.seed, 0x1F))
        self._sources = [
            (_add(world, source, network.radio, int(rng.integers(1 << 63))), source)
            for source in network.interference
        ]
        self.moved()

    def moved(self) -> None:
        """Motes are elsewhere than before."""
        for number, source in self._sources:
            for index, mote in enumerate(self._motes):
                self._world.set_interference(number, index, received_dbm(source, mote, self._model))


def _add(world: World, source: Interference, model: Radio, seed: int) -> int:
    burst = seconds(source.burst)
    end_ns = FOREVER_NS if source.end is None else round(seconds(source.end) * NS)
    return world.add_interference(
        model.channel if source.channel is None else source.channel,
        burst,
        burst * (1 - source.duty) / source.duty,
        round(seconds(source.begin) * NS),
        end_ns,
        seed,
    )


def received_dbm(source: Interference, mote: Mote, model: Radio) -> float:
    """Power of a source at a mote; by log-distance, with the exponent and reference of ``[radio]`` whatever its model."""
    if source.level_dbm is not None:
        return source.level_dbm
    assert source.x is not None
    assert source.y is not None
    assert source.power_dbm is not None
    distance = math.hypot(source.x - mote.x, source.y - mote.y)
    return source.power_dbm - radio.path_loss_db(model, distance)
