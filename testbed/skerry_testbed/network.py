"""Network descriptions: one TOML file says motes, radio, environment and faults. ``docs/testbed.md`` explains the keys."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import msgspec

from skerry_testbed.core import BACKENDS
from skerry_testbed.duration import seconds

Duration = str | int | float


class NetworkError(ValueError):
    """A description that cannot be; the message names file, key and value."""


class Mote(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One mote: position in m, crystal error in ppm, battery in mV, time of power-on."""

    id: int
    x: float
    y: float
    board: str = "iris"
    root: bool = False
    boot: Duration | None = None
    clock_ppm: float | None = None
    battery_mv: float = 3000.0


class Radio(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How frames travel. ``disc``: ``range_m``, ``reception``; ``log-distance``: ``exponent``, ``reference_db`` (loss at 1 m),
    ``shadowing_db``; ``matrix``: ``file`` of ``sender receiver probability`` lines or ``links`` of such triples."""

    model: Literal["disc", "log-distance", "matrix"] = "log-distance"
    range_m: float = 15.0
    reception: float = 1.0
    exponent: float = 3.0
    reference_db: float = 40.0
    shadowing_db: float = 0.0
    file: str | None = None
    links: list[tuple[int, int, float]] = []
    noise_dbm: float = -98.0
    capture_db: float = 3.0
    collisions: bool = True
    channel: int = 26
    pan: int = 0x5359


class Field(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One attribute of a synthetic environment: ``base + gradient * (x, y) + amplitude * sin(2 pi t / period)`` and noise."""

    base: float
    gradient: tuple[float, float] = (0.0, 0.0)
    amplitude: float = 0.0
    period: Duration = "1 day"
    noise: float = 0.0


class Environment(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What sensors see: ``fields`` by attribute, or a ``trace`` (Parquet) held between samples.

    ``columns`` maps attributes to the trace's columns, ``nodes`` mote ids (as text) to its node ids, ``step`` is the virtual time
    between two of its times, ``start`` the first of its times to use."""

    fields: dict[str, Field] = {}
    trace: str | None = None
    columns: dict[str, str] = {}
    nodes: dict[str, int] = {}
    time: str | None = None
    start: float | None = None
    step: Duration | None = None
    update: Duration = "1 s"


class Fault(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Something that goes wrong at a virtual time."""

    at: Duration
    kind: Literal["kill", "reboot", "battery_drained", "link_down", "link_up", "partition", "move", "clock_drift", "serial_noise"]
    mote: int | None = None
    to: int | None = None
    motes: list[int] = []
    x: float | None = None
    y: float | None = None
    ppm: float | None = None
    bytes: int = 64


class Network(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A whole testbed run."""

    seed: int = 1
    name: str = "network"
    mote: list[Mote] = []
    positions: str | None = None
    motes: list[int] = []
    root: int | None = None
    board: str = "iris"
    clock_ppm: float = 40.0
    boot_spread: Duration = "2 s"
    radio: Radio = msgspec.field(default_factory=Radio)
    environment: Environment = msgspec.field(default_factory=Environment)
    fault: list[Fault] = []
    firmware: str | None = None


#: Arguments each fault kind needs.
FAULT_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "kill": ("mote",), "reboot": ("mote",), "battery_drained": ("mote",), "link_down": ("mote", "to"), "link_up": ("mote", "to"),
    "partition": ("motes",), "move": ("mote", "x", "y"), "clock_drift": ("mote", "ppm"), "serial_noise": (),
}  # fmt: skip
_ATTRIBUTES = ("temp", "humidity", "light", "accel_x", "accel_y", "voltage")


def load(path: Path) -> Network:
    """Read and check a description. Raises NetworkError; relative paths inside it are relative to its folder."""
    try:
        network = msgspec.toml.decode(path.read_bytes(), type=Network)
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror or error}") from None
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise NetworkError(f"{path}: {error}") from None
    try:
        return check(network, path.parent)
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None


def check(network: Network, folder: Path = Path()) -> Network:
    """Complete a description (positions, root, paths) and check what types cannot say."""
    _place(network, folder)
    ids = [mote.id for mote in network.mote]
    _require(bool(ids), "mote", ids, "at least one [[mote]], or positions")
    for mote in network.mote:
        _require(0 <= mote.id <= 65533, "mote.id", mote.id, "0..65533")
        _require(ids.count(mote.id) == 1, "mote.id", mote.id, "each id once")
        _require(mote.board in BACKENDS, "mote.board", mote.board, " or ".join(sorted(BACKENDS)))
        _require(1800 <= mote.battery_mv <= 5500, "mote.battery_mv", mote.battery_mv, "1800..5500")
    roots = [mote.id for mote in network.mote if mote.root]
    _require(len(roots) == 1, "root", roots, "exactly one mote with root = true")
    _check_radio(network, folder, set(ids))
    _check_environment(network, folder)
    for fault in network.fault:
        _check_fault(fault, set(ids))
    _duration("boot_spread", network.boot_spread)
    return network


def _place(network: Network, folder: Path) -> None:
    if network.positions is None:
        return
    path = folder / network.positions
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise NetworkError(f"positions: {path}: {error.strerror}") from None
    for line in lines:
        columns = line.split()
        if len(columns) < 3 or not columns[0].isdigit():
            continue
        mote = Mote(id=int(columns[0]), x=float(columns[1]), y=float(columns[2]), board=network.board)
        if not network.motes or mote.id in network.motes:
            mote.root = mote.id == network.root
            network.mote.append(mote)
    missing = set(network.motes) - {mote.id for mote in network.mote}
    _require(not missing, "motes", sorted(missing), f"ids that {network.positions} has")


def _check_radio(network: Network, folder: Path, ids: set[int]) -> None:
    radio = network.radio
    _require(11 <= radio.channel <= 26, "radio.channel", radio.channel, "11..26")
    _require(radio.range_m > 0, "radio.range_m", radio.range_m, "more than 0")
    _require(0 <= radio.reception <= 1, "radio.reception", radio.reception, "0..1")
    _require(radio.shadowing_db >= 0, "radio.shadowing_db", radio.shadowing_db, "0 or more")
    if radio.model != "matrix":
        return
    if radio.file is not None:
        path = folder / radio.file
        _require(path.exists(), "radio.file", radio.file, "a file that exists")
        for line in path.read_text().splitlines():
            columns = line.split()
            if len(columns) == 3 and int(columns[0]) in ids and int(columns[1]) in ids:
                radio.links.append((int(columns[0]), int(columns[1]), float(columns[2])))
    _require(bool(radio.links), "radio.links", radio.links, "links, or a file of them, for model = 'matrix'")
    for sender, receiver, probability in radio.links:
        _require({sender, receiver} <= ids, "radio.links", (sender, receiver), "ids of motes")
        _require(0 <= probability <= 1, "radio.links", probability, "a probability 0..1")


def _check_environment(network: Network, folder: Path) -> None:
    environment = network.environment
    for name in (*environment.fields, *environment.columns):
        _require(name in _ATTRIBUTES, "environment", name, ", ".join(_ATTRIBUTES))
    for name, field in environment.fields.items():
        _require(_duration(f"environment.fields.{name}.period", field.period) > 0, f"{name}.period", field.period, "more than 0")
    _require(_duration("environment.update", environment.update) > 0, "environment.update", environment.update, "more than 0")
    if environment.trace is not None:
        path = folder / environment.trace
        _require(path.exists(), "environment.trace", environment.trace, "a Parquet file that exists")
        environment.trace = str(path)


def _check_fault(fault: Fault, ids: set[int]) -> None:
    _duration("fault.at", fault.at)
    for name in FAULT_ARGUMENTS[fault.kind]:
        _require(getattr(fault, name) not in (None, []), f"fault.{name}", getattr(fault, name), f"a value, for kind = '{fault.kind}'")
    for node in [node for node in (fault.mote, fault.to, *fault.motes) if node is not None]:
        _require(node in ids, "fault.mote", node, "the id of a mote")


def _duration(key: str, value: Duration) -> float:
    try:
        return seconds(value)
    except ValueError as error:
        raise NetworkError(f"{key}: {error}") from None


def _require(condition: bool, key: str, value: Any, expected: str) -> None:
    if not condition or (isinstance(value, float) and math.isnan(value)):
        raise NetworkError(f"{key} = {value!r}: expected {expected}")
