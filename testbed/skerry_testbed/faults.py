"""What goes wrong in a run: motes that die, links that fade, noise on the line."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable

import numpy as np

from skerry_testbed.core import World
from skerry_testbed.description import Fault, Mote
from skerry_testbed.duration import seconds
from skerry_testbed.links import Links, Pair, both_ways
from skerry_testbed.surroundings import FOREVER_NS, NS, Drift, Interferers

#: V, below the chips' minimum of 1.8: the mote browns out.
DRAINED_V = 1.7


class Faults:
    """The faults of a description, each at its virtual time, and faults injected by hand."""

    def __init__(
        self,
        planned: list[Fault],
        world: World,
        motes: list[Mote],
        links: Links,
        interferers: Interferers,
        drift: Drift,
        rng: np.random.Generator,
        noise: Callable[[bytes], None],
    ) -> None:
        self._planned = sorted(planned, key=lambda fault: seconds(fault.at))
        self._world, self._motes, self._links, self._rng, self._noise = world, motes, links, rng, noise
        self._interferers, self._drift = interferers, drift
        self._index = {mote.id: index for index, mote in enumerate(motes)}

    def due(self, now_s: float) -> None:
        """Let happen what is planned up to now."""
        while self._planned and seconds(self._planned[0].at) <= now_s:
            self.inject(self._planned.pop(0))

    def next_ns(self) -> int:
        """When the next one that is planned happens."""
        return math.floor(seconds(self._planned[0].at) * NS) if self._planned else FOREVER_NS

    def _plan(self, fault: Fault) -> None:
        bisect.insort(self._planned, fault, key=lambda planned: seconds(planned.at))

    def inject(self, fault: Fault) -> None:
        """Let something go wrong now."""
        getattr(self, f"_{fault.kind}")(fault)

    def _mote(self, fault: Fault) -> int:
        assert fault.mote is not None, f"fault {fault.kind}: mote is missing"
        return self._index[fault.mote]

    def _pair(self, fault: Fault) -> set[Pair]:
        assert fault.to is not None, f"fault {fault.kind}: to is missing"
        pair = {(self._mote(fault), self._index[fault.to])}
        return pair if fault.one_way else both_ways(pair)

    def _kill(self, fault: Fault) -> None:
        self._world.kill(self._mote(fault))

    def _battery_drained(self, fault: Fault) -> None:
        self._world.set_sensor(self._mote(fault), "voltage", DRAINED_V)
        self._world.kill(self._mote(fault))

    def _reboot(self, fault: Fault) -> None:
        self._world.reboot(self._mote(fault))

    def _press(self, fault: Fault) -> None:
        self._world.button(self._mote(fault), True)

    def _release(self, fault: Fault) -> None:
        self._world.button(self._mote(fault), False)

    def _mass_reboot(self, fault: Fault) -> None:
        """Drawn from the run's seed: who, and in which order; they follow each other within the time asked for."""
        named = fault.motes or [mote.id for mote in self._motes]
        chosen = self._rng.permutation(named)[: max(1, round(fault.share * len(named)))]
        for node, wait in zip(chosen, self._rng.uniform(0, seconds(fault.within), len(chosen)), strict=True):
            self._plan(Fault(at=seconds(fault.at) + float(wait), kind="reboot", mote=int(node)))

    def _link_down(self, fault: Fault) -> None:
        self._links.cut(self._pair(fault))

    def _link_up(self, fault: Fault) -> None:
        self._links.restore(self._pair(fault))

    def _partition(self, fault: Fault) -> None:
        inside = {self._index[node] for node in fault.motes}
        outside = set(range(len(self._motes))) - inside
        self._links.cut(both_ways({(a, b) for a in inside for b in outside}))

    def _move(self, fault: Fault) -> None:
        mote = self._mote(fault)
        assert fault.x is not None, "fault move: x is missing"
        assert fault.y is not None, "fault move: y is missing"
        self._motes[mote].x, self._motes[mote].y = fault.x, fault.y
        self._links.moved({mote})
        self._interferers.moved()

    def _clock_drift(self, fault: Fault) -> None:
        assert fault.ppm is not None, "fault clock_drift: ppm is missing"
        self._drift.set_error(self._mote(fault), fault.ppm)

    def _serial_noise(self, fault: Fault) -> None:
        self._noise(self._rng.bytes(fault.bytes))
