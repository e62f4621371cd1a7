"""A run: the world that a description asks for, its surroundings and faults, in virtual time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from skerry_protocol.packets import SETTINGS_MAGIC, Settings

from skerry_testbed import environment, radio
from skerry_testbed.capture import Capture
from skerry_testbed.core import BUILD, AirFrame, TestbedError, World
from skerry_testbed.duration import seconds
from skerry_testbed.network import Fault, Mote, Network
from skerry_testbed.report import Observer

NS = 1_000_000_000
#: Virtual time between two looks at the serial line, surroundings and faults.
SLICE_NS = 10_000_000
#: Battery below the chips' minimum: the mote browns out.
DRAINED_MV = 1700.0


class Testbed:
    """One run. ``advance`` moves virtual time; bytes and frames seen on the way go to the listeners."""

    __test__ = False

    def __init__(self, network: Network, capture: Capture | None = None) -> None:
        self.network = network
        self.motes: list[Mote] = network.mote
        self.index = {mote.id: i for i, mote in enumerate(self.motes)}
        self.root = next(i for i, mote in enumerate(self.motes) if mote.root)
        self.observer = Observer()
        self.line_listeners: list[Callable[[bytes], None]] = []
        self.air_listeners: list[Callable[[AirFrame], None]] = []
        self._capture = capture
        self._rng = np.random.default_rng(network.seed)
        self._cut: set[tuple[int, int]] = set()
        self.world = World(network.seed, network.radio.noise_dbm, network.radio.capture_db, network.radio.collisions)
        for mote in self.motes:
            self._add(mote)
        self._links = radio.links(network.radio, self.motes, np.random.default_rng(network.seed))
        for (a, b), (gain, reception) in self._links.items():
            self.world.set_link(a, b, gain, reception)
        self._environment = environment.build(network.environment, self.motes, self._rng)
        self._next_reading_ns = 0
        self._faults = sorted(network.fault, key=lambda fault: seconds(fault.at))

    def _add(self, mote: Mote) -> None:
        path = Path(self.network.firmware) if self.network.firmware else BUILD / "firmware" / f"{mote.board}.elf"
        if not path.exists():
            raise TestbedError(f"{path} is missing: run 'make firmware'")
        settings = Settings.build(
            {
                "magic": SETTINGS_MAGIC, "nodeid": mote.id, "pan": self.network.radio.pan, "channel": self.network.radio.channel,
                "root": int(mote.root), "x": round(mote.x * 100), "y": round(mote.y * 100), "boots": 0,
            }
        )  # fmt: skip
        spread = self._rng.uniform(0, seconds(self.network.boot_spread))
        ppm = self._rng.uniform(-self.network.clock_ppm, self.network.clock_ppm)
        self.world.add_mote(
            mote.id, mote.board, path, settings,
            clock_ppm=ppm if mote.clock_ppm is None else mote.clock_ppm,
            supply_mv=mote.battery_mv,
            boot_ns=round((spread if mote.boot is None else seconds(mote.boot)) * NS),
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
            self.world.run(min(end, (self.world.now_ns // SLICE_NS + 1) * SLICE_NS))
            self._watch()

    def run(self, duration_s: float | None, speed: float, stopped: Callable[[], bool], progress: Callable[[], None]) -> None:
        """Run until the virtual time or ``stopped``; ``speed`` virtual seconds per second, infinity: as fast as it goes."""
        began, origin = time.monotonic(), self.now_s
        while not stopped() and (duration_s is None or self.now_s < origin + duration_s):
            self.advance(0.02 if math.isfinite(speed) else 0.5)
            progress()
            ahead = (self.now_s - origin) / speed - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(ahead)

    def send(self, data: bytes) -> None:
        """Bytes for the root's serial line."""
        self.world.uart_write(self.root, data)

    def _watch(self) -> None:
        data = self.world.uart_read(self.root)
        if data:
            self.observer.line(data, self.world.now_ns)
            for listener in self.line_listeners:
                listener(data)
        for frame in self.world.frames():
            self.observer.air(frame)
            if self._capture:
                self._capture.add(frame)
            for hear in self.air_listeners:
                hear(frame)

    def _surroundings(self) -> None:
        now = self.world.now_ns
        if now >= self._next_reading_ns:
            for index, attribute, value in self._environment.readings(now / NS):
                self.world.set_sensor(index, attribute, value)
            self._next_reading_ns = now + round(self._environment.step_s * NS) - now % round(self._environment.step_s * NS)
        while self._faults and seconds(self._faults[0].at) * NS <= now:
            self.inject(self._faults.pop(0))

    # ---- faults ----

    def inject(self, fault: Fault) -> None:
        """Let something go wrong now."""
        getattr(self, f"_fault_{fault.kind}")(fault)

    def _mote_of(self, fault: Fault) -> int:
        assert fault.mote is not None
        return self.index[fault.mote]

    def _fault_kill(self, fault: Fault) -> None:
        self.world.kill(self._mote_of(fault))

    def _fault_battery_drained(self, fault: Fault) -> None:
        self.world.set_sensor(self._mote_of(fault), "voltage", DRAINED_MV / 1000)
        self.world.kill(self._mote_of(fault))

    def _fault_reboot(self, fault: Fault) -> None:
        self.world.reboot(self._mote_of(fault))

    def _fault_link_down(self, fault: Fault) -> None:
        assert fault.to is not None
        self._set_cut({(self._mote_of(fault), self.index[fault.to])}, cut=True)

    def _fault_link_up(self, fault: Fault) -> None:
        assert fault.to is not None
        self._set_cut({(self._mote_of(fault), self.index[fault.to])}, cut=False)

    def _fault_partition(self, fault: Fault) -> None:
        inside = {self.index[node] for node in fault.motes}
        self._set_cut({(a, b) for a in inside for b in range(len(self.motes)) if b not in inside}, cut=True)

    def _set_cut(self, pairs: set[tuple[int, int]], *, cut: bool) -> None:
        """Both directions of the pairs."""
        for pair in pairs | {(b, a) for a, b in pairs}:
            if pair not in self._links:
                continue
            gain, reception = self._links[pair]
            self.world.set_link(*pair, -1000.0 if cut else gain, reception)

    def _fault_move(self, fault: Fault) -> None:
        index = self._mote_of(fault)
        assert fault.x is not None
        assert fault.y is not None
        self.motes[index].x, self.motes[index].y = fault.x, fault.y
        moved = radio.links(self.network.radio, self.motes, np.random.default_rng(self.network.seed))
        for other in range(len(self.motes)):
            for pair in ((index, other), (other, index)):
                if index != other:
                    self.world.set_link(*pair, *moved.get(pair, (-1000.0, math.nan)))
        self._links = moved

    def _fault_clock_drift(self, fault: Fault) -> None:
        assert fault.ppm is not None
        self.world.set_clock(self._mote_of(fault), fault.ppm)

    def _fault_serial_noise(self, fault: Fault) -> None:
        """Random bytes on the line, both ways."""
        noise = self._rng.bytes(fault.bytes)
        self.send(noise)
        for listener in self.line_listeners:
            listener(noise)

    def report(self) -> dict[str, Any]:
        """See :mod:`skerry_testbed.report`."""
        return self.observer.report(self.world, self.motes, self.network.name, self.network.seed)
