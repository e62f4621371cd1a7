"""For tests over emulated motes: ``from skerry_testbed.pytest import grid, disc``. The fixture ``network`` is there without an import.

::

    def test_rows_arrive(network):
        net = network(grid(3, 2, spacing=10), radio=disc(15))
        net.advance("20s")
        assert len(net.line.of(PacketType.STATUS)) == 6

Virtual time moves only in ``advance``; a run depends on nothing but its description and seed, which is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from skerry_protocol import codec, mac
from skerry_protocol.codec import Packet
from skerry_protocol.errors import PacketError, VersionMismatchError
from skerry_protocol.settings import Settings
from skerry_testbed.checks import check_fault
from skerry_testbed.core import SENSORS, AirFrame
from skerry_testbed.duration import seconds
from skerry_testbed.line import Line
from skerry_testbed.network import Environment, Fault, Interference, Mote, Network, Radio, check, load
from skerry_testbed.runner import Testbed, settings_of


def grid(
    columns: int, rows: int, *, spacing: float, boards: Sequence[str] = ("iris",), root: int = 0
) -> list[Mote]:
    """Motes 0, 1, … on a grid, ``spacing`` m apart, of these boards in turn; mote 0 is in the corner."""
    return [
        Mote(
            id=number, x=number % columns * spacing, y=number // columns * spacing,
            board=boards[number % len(boards)], root=number == root,
        )
        for number in range(columns * rows)
    ]  # fmt: skip


def line_of(count: int, *, spacing: float, boards: Sequence[str] = ("iris",)) -> list[Mote]:
    """Motes in a line; mote 0, at its end, is the root."""
    return grid(count, 1, spacing=spacing, boards=boards)


def disc(range_m: float, reception: float = 1.0) -> Radio:
    """Everybody within ``range_m`` hears with this probability, nobody beyond."""
    return Radio(model="disc", range_m=range_m, reception=reception)


class MoteHandle:
    """One mote of a running network."""

    def __init__(self, network: NetworkHandle, index: int) -> None:
        self._network, self.index = network, index
        self.description = network.bed.motes[index]

    @property
    def id(self) -> int:
        """Short address."""
        return self.description.id

    @property
    def position(self) -> tuple[float, float]:
        """Where it stands now, m."""
        return self.description.x, self.description.y

    def kill(self) -> None:
        """Power off."""
        self._network.bed.world.kill(self.index)

    def reboot(self) -> None:
        """Power cycle: RAM lost, EEPROM kept."""
        self._network.bed.world.reboot(self.index)

    def flash(self, **settings: int) -> None:
        """Flashed again: settings as before its first start but for some (members of ``Settings``), its count of starts among what is
        lost; it starts at once. ``session`` 0: the chip draws it."""
        drawn = Settings.parse(settings_of(self._network.bed.network, self.description))
        written = Settings.build({**drawn, "session": 0, **settings})
        self._network.bed.world.flash(self.index, bytes(written))

    def press(self) -> None:
        """Press its button for a fifth of a second."""
        self._network.bed.world.button(self.index, True)
        self._network.advance("200ms")
        self._network.bed.world.button(self.index, False)

    @property
    def outputs(self) -> set[str]:
        """What it has switched on: ``red``, ``green``, ``yellow``, ``actuator``."""
        return self._network.bed.world.outputs(self.index)

    @property
    def alive(self) -> bool:
        """Powered and not crashed."""
        return self._network.bed.world.alive(self.index)

    @property
    def energy(self) -> dict[str, float]:
        """Joule (``*_j``) and seconds (``*_s``) by component and state."""
        return self._network.bed.world.energy(self.index)

    @property
    def counters(self) -> dict[str, int]:
        """Frames sent, received and lost; resets."""
        return self._network.bed.world.counters(self.index)

    @property
    def erasures(self) -> list[int]:
        """How often each page of its flash was erased; nothing where that is not counted."""
        return self._network.bed.world.erasures(self.index)

    def cut_power(self, after: int, seed: int) -> None:
        """Power goes, and comes back, while it writes a word of flash or erases a page, after so many of them; see
        :meth:`World.cut_power`."""
        self._network.bed.world.cut_power(self.index, after, seed)

    def uart(self) -> bytes:
        """Bytes the mote has sent on its UART since the last call (not for the root, whose line the network reads)."""
        return self._network.bed.world.uart_read(self.index)

    def sense(self, **values: float) -> None:
        """Set what its sensors see from now on, in SI: ``sense(temp=25.5, light=300)``; NaN fails the sensor."""
        for attribute, value in values.items():
            if attribute not in SENSORS:
                raise TypeError(f"sense({attribute}=…): motes can sense {', '.join(SENSORS)}")
            self._network.bed.world.set_sensor(self.index, attribute, value)

    @property
    def settings(self) -> Any:
        """The newest that its EEPROM, or the flash that stands for it, holds."""
        stored = self._network.bed.world.eeprom(self.index, 2 * FLASH_PAGE)
        size = Settings.sizeof()
        if self.description.board != "cc2538":
            return Settings.parse(stored[:size])
        words = -(-size // 4) * 4
        # Records stand in one of two pages, the newest last.
        records = [
            stored[at : at + words]
            for page in (0, FLASH_PAGE)
            for at in range(page, page + FLASH_PAGE - words + 1, words)
        ]
        return Settings.parse([record for record in records if record != b"\xff" * words][-1])


#: Bytes of a page of the CC2538's flash (SWRU319C, chapter 8).
FLASH_PAGE = 2048


class NetworkHandle:
    """A running network: motes, the root's line, the air, and time."""

    def __init__(self, description: Network) -> None:
        print(f"network {description.name!r}, seed {description.seed}")
        self.bed = Testbed(description)
        self.motes = {mote.id: MoteHandle(self, index) for index, mote in enumerate(self.bed.motes)}
        self.frames: list[AirFrame] = []
        self.line = Line(self.bed.send, lambda: self.bed.now_s)
        self.bed.line_listeners.append(self.line.received)
        self.bed.air_listeners.append(self.frames.append)

    @property
    def now(self) -> float:
        """Virtual time in s."""
        return self.bed.now_s

    def advance(self, duration: str | float) -> None:
        """Let virtual time pass. Fails the test when a mote's CPU stops on a fault, or does what its chip's model does not know."""
        self.bed.advance(seconds(duration))
        assert not self.bed.messages, self.bed.messages
        for mote in self.motes.values():
            fault = self.bed.world.fault(mote.index)
            assert not fault, f"mote {mote.id}: {fault}"

    def inject(self, **fault: Any) -> None:
        """A fault now: ``inject(kind="link_down", mote=1, to=2)``. Raises NetworkError for what a description could not say either."""
        now = Fault(at=self.now, **fault)
        check_fault(now, self.bed.network)
        self.bed.inject(now)

    def packets(self) -> list[tuple[AirFrame, mac.MacFrame, Packet]]:
        """Frames seen on the air that carry packets, decoded."""
        found = []
        for frame in self.frames:
            try:
                decoded = mac.decode(frame.psdu)
                if decoded is not None:
                    found.append((frame, decoded, codec.decode(decoded.payload)))
            except (PacketError, VersionMismatchError):
                continue
        return found

    def report(self) -> dict[str, Any]:
        """See :mod:`skerry_testbed.report`."""
        return self.bed.report()


MakeNetwork = Callable[..., NetworkHandle]


def make_network(
    motes: list[Mote] | Path | str | Network,
    *,
    radio: Radio | None = None,
    environment: Environment | None = None,
    seed: int | None = None,
    faults: list[Fault] | None = None,
    interference: list[Interference] | None = None,
    clock_ppm: float | None = None,
    firmware: Path | dict[str, str] | None = None,
    attributes: list[str] | None = None,
) -> NetworkHandle:
    """What the fixture ``network`` is."""
    if isinstance(motes, (Path, str, Network)):
        description = motes if isinstance(motes, Network) else load(Path(motes))
        given = {
            "radio": radio, "environment": environment, "faults": faults, "interference": interference, "clock_ppm": clock_ppm,
            "firmware": firmware, "attributes": attributes,
        }  # fmt: skip
        for name, value in given.items():
            if value is not None:
                raise TypeError(f"network(…, {name}=…): a description says that; beside it goes seed=")
        if seed is not None:
            description = msgspec.structs.replace(description, seed=seed)
    else:
        description = check(
            Network(
                name="test", seed=1 if seed is None else seed, mote=motes, radio=radio or disc(15),
                environment=environment or Environment(), fault=faults or [], interference=interference or [],
                clock_ppm=40.0 if clock_ppm is None else clock_ppm, attributes=attributes or [],
                firmware=str(firmware) if isinstance(firmware, Path) else firmware,
            )
        )  # fmt: skip
    handle = NetworkHandle(description)
    handle.advance(2.5)
    handle.line.connect()
    return handle
