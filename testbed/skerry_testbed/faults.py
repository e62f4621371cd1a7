"""What goes wrong in a run: motes that die, links that fade, noise on the line."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skerry_testbed import radio
from skerry_testbed.core import World
from skerry_testbed.duration import seconds
from skerry_testbed.network import Fault, Mote, Radio

#: V, below the chips' minimum of 1.8: the mote browns out.
DRAINED_V = 1.7
#: dB, removes a link.
NO_GAIN = -1000.0

Pair = tuple[int, int]


class Links:
    """Who hears whom, by mote index: the radio model's links without those that are cut."""

    def __init__(self, world: World, model: Radio, motes: list[Mote], seed: int) -> None:
        self._world, self._model, self._motes, self._seed = world, model, motes, seed
        self._cut: set[Pair] = set()
        self._links = self._compute()
        for pair, link in self._links.items():
            world.set_link(*pair, *link)

    def _compute(self) -> radio.Links:
        # The same seed each time: a mote that moves leaves the shadowing of all others as it was.
        return radio.links(self._model, self._motes, np.random.default_rng(self._seed))

    def gain(self, sender: int, receiver: int) -> float:
        """Received minus sent power in dB; -1000: they do not hear each other."""
        pair = (sender, receiver)
        return NO_GAIN if pair in self._cut or pair not in self._links else self._links[pair][0]

    def cut(self, pairs: set[Pair]) -> None:
        """Take links out, in both directions."""
        both = pairs | {(b, a) for a, b in pairs}
        self._cut |= both
        self._apply(both)

    def restore(self, pairs: set[Pair]) -> None:
        """Undo :meth:`cut`."""
        both = pairs | {(b, a) for a, b in pairs}
        self._cut -= both
        self._apply(both)

    def moved(self, mote: int) -> None:
        """A mote's position has changed; links that are cut stay so."""
        self._links = self._compute()
        others = set(range(len(self._motes))) - {mote}
        self._apply({(mote, other) for other in others} | {(other, mote) for other in others})

    def _apply(self, pairs: set[Pair]) -> None:
        for pair in sorted(pairs):
            _, reception = self._links.get(pair, (NO_GAIN, math.nan))
            self._world.set_link(*pair, self.gain(*pair), reception)


class Faults:
    """The faults of a description, each at its virtual time, and faults injected by hand."""

    def __init__(
        self,
        planned: list[Fault],
        world: World,
        motes: list[Mote],
        links: Links,
        rng: np.random.Generator,
        noise: Callable[[bytes], None],
    ) -> None:
        self._planned = sorted(planned, key=lambda fault: seconds(fault.at))
        self._world, self._motes, self._links, self._rng, self._noise = world, motes, links, rng, noise
        self._index = {mote.id: index for index, mote in enumerate(motes)}

    def due(self, now_s: float) -> None:
        """Let happen what is planned up to now."""
        while self._planned and seconds(self._planned[0].at) <= now_s:
            self.inject(self._planned.pop(0))

    def inject(self, fault: Fault) -> None:
        """Let something go wrong now."""
        getattr(self, f"_{fault.kind}")(fault)

    def _mote(self, fault: Fault) -> int:
        assert fault.mote is not None, f"fault {fault.kind}: mote is missing"
        return self._index[fault.mote]

    def _pair(self, fault: Fault) -> set[Pair]:
        assert fault.to is not None, f"fault {fault.kind}: to is missing"
        return {(self._mote(fault), self._index[fault.to])}

    def _kill(self, fault: Fault) -> None:
        self._world.kill(self._mote(fault))

    def _battery_drained(self, fault: Fault) -> None:
        self._world.set_sensor(self._mote(fault), "voltage", DRAINED_V)
        self._world.kill(self._mote(fault))

    def _reboot(self, fault: Fault) -> None:
        self._world.reboot(self._mote(fault))

    def _link_down(self, fault: Fault) -> None:
        self._links.cut(self._pair(fault))

    def _link_up(self, fault: Fault) -> None:
        self._links.restore(self._pair(fault))

    def _partition(self, fault: Fault) -> None:
        inside = {self._index[node] for node in fault.motes}
        outside = set(range(len(self._motes))) - inside
        self._links.cut({(a, b) for a in inside for b in outside})

    def _move(self, fault: Fault) -> None:
        mote = self._mote(fault)
        assert fault.x is not None, "fault move: x is missing"
        assert fault.y is not None, "fault move: y is missing"
        self._motes[mote].x, self._motes[mote].y = fault.x, fault.y
        self._links.moved(mote)

    def _clock_drift(self, fault: Fault) -> None:
        assert fault.ppm is not None, "fault clock_drift: ppm is missing"
        self._world.set_clock(self._mote(fault), fault.ppm)

    def _serial_noise(self, fault: Fault) -> None:
        self._noise(self._rng.bytes(fault.bytes))
