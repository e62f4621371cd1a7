"""A run: the world that a description asks for, its surroundings and faults, in virtual time."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from skerry_protocol.attributes import STATICS_MAXIMUM
from skerry_protocol.mac import channel_mask
from skerry_protocol.settings import SETTINGS_MAGIC, Settings
from skerry_testbed import built, environment
from skerry_testbed.core import AirFrame, World
from skerry_testbed.duration import seconds
from skerry_testbed.faults import Faults
from skerry_testbed.links import Links
from skerry_testbed.network import Fault, Mote, Network
from skerry_testbed.report import Observer
from skerry_testbed.surroundings import STEP_S, Drift, Interferers, Mobility

NS = 1_000_000_000
#: Virtual time between two looks at the serial line, surroundings and faults.
SLICE_NS = 10_000_000
#: Slices between two looks at the wall clock; at most so much virtual time is added to a row's latency.
PACE_SLICES = 2
#: s between two looks at whether a run is to end, while it waits for the wall clock.
LOOK_S = 0.1
#: A run that is so far behind the speed that it is to have, in s, does not catch up: it would be faster than that afterwards.
BEHIND_S = 0.5
#: Over so long, in s, the speed is measured.
MEASURED_S = 5.0


class Crystal(NamedTuple):
    """When a mote is switched on, and how wrong its crystal is."""

    boot_s: float
    ppm: float


def crystals(network: Network, rng: np.random.Generator) -> list[Crystal]:
    """Of all motes, in order; two draws for each."""
    found = []
    for mote in network.mote:
        spread = rng.uniform(0, seconds(network.boot_spread))
        ppm = rng.uniform(-network.clock_ppm, network.clock_ppm)
        found.append(
            Crystal(
                float(spread) if mote.boot is None else seconds(mote.boot),
                float(ppm) if mote.clock_ppm is None else mote.clock_ppm,
            )
        )
    return found


def image_of(network: Network, mote: Mote) -> Path:
    """The ELF file that a mote runs. Raises TestbedError when there is none, or one that belongs to another version of this package."""
    path = network.image(mote.board) or built.image(mote.board)
    built.check_image(path)
    return path


def _statics_of(network: Network, mote: Mote) -> list[int]:
    """Users' attributes as settings have them: the network's in their order."""
    kept = [mote.attributes[name] + 32768 if name in mote.attributes else 0 for name in network.attributes]
    return kept + [0] * (STATICS_MAXIMUM - len(kept))


def settings_of(network: Network, mote: Mote) -> bytes:
    """What a mote's EEPROM holds before its first start. Emulated oscillators have no noise from which chips draw their names."""
    drawn = np.random.default_rng((network.seed, mote.id))
    return bytes(
        Settings.build(
        {
            "magic": SETTINGS_MAGIC, "nodeid": mote.id, "pan": network.radio.pan, "channel": network.radio.channel,
            "root": int(mote.root), "x": round(mote.x * 100), "y": round(mote.y * 100), "boots": 0,
            "session": int(drawn.integers(1, 2**16)), "factory": int(drawn.integers(1, 2**32)),
            "room": mote.room, "floor": mote.floor, "group": mote.group,
            "channels": channel_mask(network.radio.channels), "statics": _statics_of(network, mote),
        })
    )  # fmt: skip


class Testbed:
    """One run. ``advance`` moves virtual time; bytes and frames seen on the way go to the listeners."""

    __test__ = False

    def __init__(self, network: Network) -> None:
        self.network = network
        # Copies: motes that move leave the description as it is.
        self.motes: list[Mote] = [msgspec.structs.replace(mote) for mote in network.mote]
        self.index = {mote.id: i for i, mote in enumerate(self.motes)}
        self.root = next(i for i, mote in enumerate(self.motes) if mote.root)
        self.observer = Observer()
        self.line_listeners: list[Callable[[bytes], None]] = []
        self.air_listeners: list[Callable[[AirFrame], None]] = []
        #: Called at the end of each slice of virtual time, which are the same however a run is paced.
        self.slice_listeners: list[Callable[[], None]] = []
        #: What motes did that their chip's model does not know, or that stopped their CPU; a line each.
        self.messages: list[str] = []
        self.message_listeners: list[Callable[[str], None]] = []
        #: Virtual seconds per second that :meth:`run` has come to of late; None: not known yet.
        self.speed: float | None = None
        self._rng = np.random.default_rng(network.seed)
        self.world = World(
            network.seed, network.radio.noise_dbm, network.radio.capture_db, network.radio.collisions
        )
        clocks = crystals(network, self._rng)
        for mote, clock in zip(self.motes, clocks, strict=True):
            self._add(mote, clock)
        self.links = Links(self.world, network.radio, self.motes, network.seed)
        self._mobility = Mobility(self.motes, self.links)
        self._interferers = Interferers(self.world, network, self.motes)
        self._drift = Drift(self.world, self.motes, [clock.ppm for clock in clocks], network.crystal)
        self._environment = environment.build(network.environment, self.motes, self._rng)
        self._next_reading_ns = 0
        self._next_step_ns = 0
        self._faults = Faults(
            network.fault, self.world, self.motes, self.links, self._interferers, self._drift, self._rng, self._line_noise
        )  # fmt: skip
        self._to_root = bytearray()
        #: s of wall clock for which debuggers have made virtual time stand still.
        self.held_s = 0.0

    def _add(self, mote: Mote, crystal: Crystal) -> None:
        self.world.add_mote(
            mote.id, mote.board, image_of(self.network, mote), settings_of(self.network, mote),
            clock_ppm=crystal.ppm, supply_mv=mote.battery_mv, boot_ns=round(crystal.boot_s * NS),
        )  # fmt: skip

    @property
    def now_s(self) -> float:
        """Virtual time."""
        return self.world.now_ns / NS

    def advance(self, duration_s: float) -> None:
        """Run for a virtual time."""
        end = self.world.now_ns + round(duration_s * NS)
        while self.world.now_ns < end:
            self._surroundings()
            self.world.watch(self.root, SLICE_NS, min(end, self._look_ns()))
            self._watch()

    def _look_ns(self) -> int:
        """Up to where nobody but motes has anything to do: the end of the slice, or of the last one before something changes."""
        slice_end = (self.world.now_ns // SLICE_NS + 1) * SLICE_NS
        if self.slice_listeners or self._to_root:
            return slice_end
        changes = min(self._next_reading_ns, self._next_step_ns, self._faults.next_ns())
        return max(slice_end, changes // SLICE_NS * SLICE_NS)

    def run(
        self,
        duration_s: float | None,
        speed: float,
        stopped: Callable[[], bool],
        progress: Callable[[], None],
        closely: bool = False,
    ) -> None:
        """Run until the virtual time or ``stopped``; ``speed`` virtual seconds per second, infinity: as fast as it goes. ``progress`` is
        called often in either time, and ``closely`` so soon that who waits for an answer gets it, however slow the emulation is. For how
        long debuggers hold the run up is not made up for."""
        began, origin = time.monotonic() - self.held_s, self.now_s
        limit = math.inf if duration_s is None else origin + duration_s
        # Whole slices: motes are in step at their ends, so that a run is the same at any speed.
        slices = PACE_SLICES if closely else math.floor(PACE_SLICES * max(1.0, min(speed, 10.0)))
        reached = deque([(began, origin)])
        while not stopped() and self.now_s < limit:
            self.advance(min(slices * SLICE_NS / NS, limit - self.now_s))
            progress()
            due = began + (self.now_s - origin) / speed
            while not stopped() and (ahead := due + self.held_s - time.monotonic()) > 0:
                time.sleep(min(ahead, LOOK_S))
                progress()
            now = time.monotonic() - self.held_s
            if now - due > BEHIND_S:
                began, origin = now, self.now_s
            self._measure(reached, now)

    def _measure(self, reached: deque[tuple[float, float]], now: float) -> None:
        """``reached``: this machine's clock and virtual time, since a while ago."""
        if now - reached[-1][0] >= LOOK_S:
            reached.append((now, self.now_s))
        while len(reached) > 2 and now - reached[1][0] >= MEASURED_S:
            reached.popleft()
        since, virtual_s = reached[0]
        if now - since >= LOOK_S:
            self.speed = (self.now_s - virtual_s) / (now - since)

    def send(self, data: bytes) -> None:
        """Bytes for the root's serial line; they wait their turn when the line is busy."""
        self._to_root += data
        self._flush()

    def _flush(self) -> None:
        if self._to_root:
            del self._to_root[: self.world.uart_write(self.root, bytes(self._to_root))]

    def _watch(self) -> None:
        self._flush()
        data = self.world.uart_read(self.root)
        if data:
            self._from_root(data)
        for message in self.world.messages():
            self.messages.append(message)
            for tell in self.message_listeners:
                tell(message)
        for frame in self.world.frames():
            self.observer.air(frame)
            for hear in self.air_listeners:
                hear(frame)
        for turn in self.slice_listeners:
            turn()

    def _from_root(self, data: bytes) -> None:
        self.observer.line(data, self.world.now_ns)
        for listener in self.line_listeners:
            listener(data)

    def _line_noise(self, noise: bytes) -> None:
        """Bytes that nobody sent, at both ends of the line."""
        self.send(noise)
        self._from_root(noise)

    def _surroundings(self) -> None:
        now = self.world.now_ns
        if now >= self._next_reading_ns:
            for index, attribute, value in self._environment.readings(now / NS):
                self.world.set_sensor(index, attribute, value)
                if attribute == "temp":
                    self._drift.feel(index, value)
            step = round(self._environment.step_s * NS)
            self._next_reading_ns = now + step - now % step
        if now >= self._next_step_ns:
            if self._mobility.step(now / NS):
                self._interferers.moved()
            self._drift.step(now / NS)
            self._next_step_ns = now + round(STEP_S * NS)
        self._faults.due(now / NS)

    def inject(self, fault: Fault) -> None:
        """Let something go wrong now."""
        self._faults.inject(fault)

    def report(self) -> dict[str, Any]:
        """See :mod:`skerry_testbed.report`."""
        report = self.observer.report(self.world, self.motes, self.network.name, self.network.seed)
        return {**report, "messages": self.messages}
