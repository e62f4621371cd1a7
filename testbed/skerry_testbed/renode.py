"""A network description as a script for Renode: the same images on somebody else's model of the chip.

Renode knows less than the testbed does: its radio sends in no time, nobody else's frame makes the channel busy, frames do not collide,
and a radio that is off still receives. What is exported: images, settings, positions, who hears whom and how well,
crystals, readings, and those faults that it can do.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from skerry_testbed import built, environment, radio
from skerry_testbed.duration import seconds
from skerry_testbed.network import Fault, Mote, Network, NetworkError
from skerry_testbed.runner import Crystal, crystals, image_of, settings_of

#: The one that Renode has a model of.
BOARD = "cc2538"
FILES = built.FILES / "renode"
ADC_ADDRESS, ADC_SIZE = 0x400D7000, 0x100
#: Where the firmware looks for its settings; firmware/drivers/cc2538/settings.c.
SETTINGS_ADDRESS = 0x0027F000
VECTORS_ADDRESS = 0x00200000
TICKS_PER_SECOND = 32768
CENTIMETRES = 100
#: Readings nearer to the last one than these are left out: below the ADC's resolution, in SI.
RESOLUTION = {
    "temp": 0.01,
    "humidity": 0.01,
    "light": 0.3,
    "accel_x": 0.002,
    "accel_y": 0.002,
    "voltage": 0.0005,
}
#: Faults that Renode can do, and how; None: not at all.
EXPORTED_FAULTS = ("kill", "reboot", "move", "clock_drift")


def script(network: Network, *, port: int, quantum_s: float, duration_s: float, fastest: bool) -> str:
    """The whole script. Raises NetworkError for what Renode cannot do.

    ``duration_s`` is how much of the environment to write down; ``fastest``: not paced to the wall clock.
    """
    for mote in network.mote:
        if mote.board != BOARD:
            raise NetworkError(
                f"mote {mote.id}: board = {mote.board!r}: Renode has no model of it; expected {BOARD!r}"
            )
    for fault in network.fault:
        if fault.kind not in EXPORTED_FAULTS:
            raise NetworkError(
                f"fault at {fault.at!r}: kind = {fault.kind!r}: Renode can do {', '.join(EXPORTED_FAULTS)}"
            )
    for key, given in (
        ("radio.bursts", network.radio.bursts or network.radio.link_bursts),
        ("interference", network.interference),
        ("crystal", network.crystal),
        ("mote.path", [mote.id for mote in network.mote if mote.path]),
    ):
        if given:
            raise NetworkError(f"{key} = {given!r}: Renode cannot do it; expected none")
    rng = np.random.default_rng(network.seed)
    clocks = crystals(network, rng)
    readings = _readings(network, rng, duration_s)
    for mote, seen in zip(network.mote, readings, strict=True):
        seen.setdefault("voltage", [(0.0, mote.battery_mv / 1000)])
    lines = [
        f":name: {network.name}",
        f":description: {len(network.mote)} CC2538 motes with skerry's firmware",
        "",
        f"$port?={port}",
        "emulation SetGlobalSerialExecution true",
        f"emulation SetSeed {network.seed & 0x7FFFFFFF}",
        f'emulation SetGlobalQuantum "{quantum_s:.6f}"',
        f"emulation SetGlobalAdvanceImmediately {'true' if fastest else 'false'}",
        "logLevel 3",
        "",
        'emulation CreateIEEE802_15_4Medium "wireless"',
        *_medium(network),
    ]
    for index, (mote, clock) in enumerate(zip(network.mote, clocks, strict=True)):
        lines += ["", *_mote(network, index, mote, clock, readings[index])]
    lines += ["", *_faults(network, clocks)]
    return "\n".join(lines) + "\n"


def _readings(
    network: Network, rng: np.random.Generator, duration_s: float
) -> list[dict[str, list[tuple[float, float | None]]]]:
    """For each mote and attribute what its sensor sees: (time, SI value or None) wherever that changes."""
    source = environment.build(network.environment, network.mote, rng)
    found: list[dict[str, list[tuple[float, float | None]]]] = [{} for _ in network.mote]
    for step in range(math.floor(duration_s / source.step_s) + 1):
        now = step * source.step_s
        for index, attribute, value in source.readings(now):
            samples = found[index].setdefault(attribute, [])
            reading = None if math.isnan(value) else round(value, 5)
            last = samples[-1][1] if samples else math.inf
            changed = (
                last is not reading
                if last is None or reading is None
                else abs(reading - last) >= RESOLUTION[attribute]
            )
            if changed:
                samples.append((round(now, 6), reading))
    return found


def _medium(network: Network) -> Iterator[str]:
    """The built-in disc where it says the same, else a matrix of reception rates."""
    model = network.radio
    if _is_disc(network):
        yield f"wireless SetRangeWirelessFunction {math.floor(model.range_m * CENTIMETRES)}"
        return
    links = radio.links(model, network.mote, np.random.default_rng(network.seed))
    rates = (
        f"{sender} {receiver} {radio.reception(gain, probability, model.noise_dbm, 'cc2538'):.4f}"
        for (sender, receiver), (gain, probability) in sorted(links.items())
    )
    yield f"include @{_path(FILES / 'MatrixMedium.cs')}"
    yield f'wireless SetReceptionMatrix "{", ".join(rates)}"'


def _is_disc(network: Network) -> bool:
    return network.radio.model == "disc" and network.radio.reception == 1.0


def _path(path: Path) -> str:
    """As the monitor's scripts write paths."""
    return str(path.resolve()).replace(" ", "\\ ")


def _place(network: Network, index: int, x: float, y: float) -> str:
    """Renode's range is a whole number, so places are whole numbers too, of centimetres from the least of all coordinates."""
    faults = [fault for fault in network.fault if fault.kind == "move"]
    least_x = min([mote.x for mote in network.mote] + [fault.x or 0.0 for fault in faults])
    least_y = min([mote.y for mote in network.mote] + [fault.y or 0.0 for fault in faults])
    z = 0 if _is_disc(network) else index
    return (
        f"wireless SetPosition sysbus.radio {round((x - least_x) * CENTIMETRES)}"
        f" {round((y - least_y) * CENTIMETRES)} {z}"
    )


def _frequency(ppm: float) -> int:
    """Renode's timers take whole Hz: steps of 30.5 ppm."""
    return round(TICKS_PER_SECOND * (1 + ppm * 1e-6))


def _mote(
    network: Network,
    index: int,
    mote: Mote,
    clock: Crystal,
    readings: dict[str, list[tuple[float, float | None]]],
) -> Iterator[str]:
    yield f'mach create "mote{mote.id}"'
    yield f"machine LoadPlatformDescription @{_path(FILES / 'cc2538.repl')}"
    yield "machine PyDevFromString"
    yield '"""'
    yield f"READINGS = {readings!r}"
    yield (FILES / "adc.py").read_text().rstrip()
    yield f'""" {ADC_ADDRESS:#x} {ADC_SIZE:#x} True "adc"'
    yield "connector Connect sysbus.radio wireless"
    yield _place(network, index, mote.x, mote.y)
    yield f"sysbus.sleepTimer Frequency {_frequency(clock.ppm)}"
    if mote.root:
        yield 'emulation CreateServerSocketTerminal $port "line" false'
        yield "connector Connect sysbus.uart0 line"
    yield "macro reset"
    yield '"""'
    yield f"    sysbus LoadELF @{_path(image_of(network, mote))}"
    yield f"    sysbus.cpu VectorTableOffset {VECTORS_ADDRESS:#010x}"
    for offset, word in enumerate(_words(settings_of(network, mote))):
        yield f"    sysbus WriteDoubleWord {SETTINGS_ADDRESS + 4 * offset:#010x} {word:#010x}"
    yield '"""'
    yield "runMacro $reset"
    yield "mach clear"


def _words(data: bytes) -> tuple[int, ...]:
    padded = data + bytes(-len(data) % 4)
    return struct.unpack(f"<{len(padded) // 4}I", padded)


def _faults(network: Network, clocks: list[Crystal]) -> Iterator[str]:
    """The macro ``faults``: runs the emulation from event to event, in the order of their times."""
    events: list[tuple[float, list[str]]] = []
    for mote, clock in zip(network.mote, clocks, strict=True):
        if clock.boot_s > 0:
            events.append((0.0, [f'mach set "mote{mote.id}"', "sysbus.cpu IsHalted true"]))
            events.append((clock.boot_s, [f'mach set "mote{mote.id}"', "sysbus.cpu IsHalted false"]))
    events += [(seconds(fault.at), _fault(network, fault)) for fault in network.fault]
    yield "# `start` runs all motes from 0 s on. `runMacro $faults` switches them on at their own times and lets go"
    yield "# wrong what the description says."
    yield "macro faults"
    yield '"""'
    now = 0.0
    for at, commands in sorted(events, key=lambda event: event[0]):
        if at > now:
            yield f'    emulation RunFor "{at - now:.6f}"'
            now = at
        yield from (f"    {command}" for command in commands)
    yield "    mach clear"
    yield "    start"
    yield '"""'


def _fault(network: Network, fault: Fault) -> list[str]:
    index = next(i for i, mote in enumerate(network.mote) if mote.id == fault.mote)
    select = f'mach set "mote{fault.mote}"'
    if fault.kind == "kill":
        return [select, "sysbus.cpu IsHalted true"]
    if fault.kind == "reboot":
        return [select, "machine Reset", "sysbus.cpu IsHalted false"]
    if fault.kind == "move":
        assert fault.x is not None
        assert fault.y is not None
        if not _is_disc(network):
            raise NetworkError("fault: kind = 'move': Renode can do it for model = 'disc' with reception = 1")
        return [select, _place(network, index, fault.x, fault.y)]
    assert fault.ppm is not None
    return [select, f"sysbus.sleepTimer Frequency {_frequency(fault.ppm)}"]
