"""Network descriptions: one TOML file says motes, radio, environment and faults. ``docs/testbed.md`` explains the keys."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from skerry_testbed import schema_errors
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

    ``columns`` maps attributes to the trace's columns, ``nodes`` mote ids (as text) to its node ids, or lists its node ids in the
    order of the motes. ``start`` is the first of its times to use. The virtual time of a sample is that since ``start``, divided by
    ``speedup``; or, with ``step``, the trace's times are that far apart."""

    fields: dict[str, Field] = {}
    trace: str | None = None
    columns: dict[str, str] = {}
    nodes: dict[str, int] | list[int] = {}
    time: str | None = None
    start: float | None = None
    step: Duration | None = None
    speedup: float = 1.0
    update: Duration = "1 s"


class Fault(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Something that goes wrong at a virtual time."""

    at: Duration
    kind: Literal[
        "kill",
        "reboot",
        "battery_drained",
        "link_down",
        "link_up",
        "partition",
        "move",
        "clock_drift",
        "serial_noise",
    ]
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
    firmware: str | dict[str, str] | None = None

    def image(self, board: str) -> Path | None:
        """The ELF file that motes of a board run, where the description names one."""
        named = self.firmware.get(board) if isinstance(self.firmware, dict) else self.firmware
        return None if named is None else Path(named)


#: Arguments each fault kind takes; all are needed but ``bytes``.
FAULT_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "kill": ("mote",), "reboot": ("mote",), "battery_drained": ("mote",), "link_down": ("mote", "to"), "link_up": ("mote", "to"),
    "partition": ("motes",), "move": ("mote", "x", "y"), "clock_drift": ("mote", "ppm"), "serial_noise": ("bytes",),
}  # fmt: skip
#: Keys of [radio] that only these models read.
MODEL_KEYS: dict[str, tuple[str, ...]] = {
    "disc": ("range_m", "reception"), "log-distance": ("exponent", "reference_db", "shadowing_db"), "matrix": ("file", "links"),
}  # fmt: skip
_ATTRIBUTES = ("temp", "humidity", "light", "accel_x", "accel_y", "voltage")
_NODE_MAXIMUM = 65533


def load(path: Path) -> Network:
    """Read and check a description. Raises NetworkError; relative paths inside it are relative to its folder."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        network = msgspec.convert(raw, Network)
        _check_given(raw, network)
        return check(network, path.parent)
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NetworkError(f"{path}: no TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise NetworkError(f"{path}: {schema_errors.explain(error, raw, Network)}") from None
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None


def check(network: Network, folder: Path = Path()) -> Network:
    """Complete a description (positions, root, paths) and check what types cannot say. Raises NetworkError."""
    _require(0 <= network.seed < 1 << 64, "seed", network.seed, "0..2^64-1")
    _place(network, folder)
    ids = [mote.id for mote in network.mote]
    _require(bool(ids), "mote", ids, "at least one [[mote]], or positions = a file")
    for mote in network.mote:
        _check_mote(mote)
        _require(ids.count(mote.id) == 1, "mote.id", mote.id, "each id once")
    roots = [mote.id for mote in network.mote if mote.root]
    _require(len(roots) == 1, "root", roots, "exactly one mote with root = true")
    _require(0 <= network.clock_ppm <= 500, "clock_ppm", network.clock_ppm, "0..500")
    _duration("boot_spread", network.boot_spread)
    _find_firmware(network, folder.resolve())
    _check_radio(network, folder, set(ids))
    _check_environment(network.environment, folder, ids)
    for fault in network.fault:
        _check_fault(fault, network.radio, set(ids))
    return network


def _find_firmware(network: Network, folder: Path) -> None:
    """Make the paths of images absolute."""

    def found(key: str, name: str) -> str:
        path = folder / name
        _require(path.is_file(), key, name, f"an ELF file; {path} is none")
        return str(path)

    if isinstance(network.firmware, str):
        network.firmware = found("firmware", network.firmware)
    elif network.firmware is not None:
        for board in network.firmware:
            _require(board in BACKENDS, "firmware", board, f"a known board: {', '.join(sorted(BACKENDS))}")
        network.firmware = {
            board: found(f"firmware.{board}", name) for board, name in network.firmware.items()
        }


def _check_given(raw: dict[str, Any], network: Network) -> None:
    """Keys that were written but mean nothing beside the others."""
    radio = raw.get("radio", {})
    for model, keys in MODEL_KEYS.items():
        for key in keys:
            if key in radio and model != network.radio.model:
                right = ", ".join(MODEL_KEYS[network.radio.model])
                raise NetworkError(
                    f"radio.{key} is for model = {model!r}; model = {network.radio.model!r} takes {right}"
                )
    for number, fault in enumerate(raw.get("fault", [])):
        takes = FAULT_ARGUMENTS[fault["kind"]]
        for key in fault:
            if key not in ("at", "kind", *takes):
                kind = fault["kind"]
                raise NetworkError(f"fault[{number}].{key}: kind = {kind!r} takes {', '.join(takes)}")
    _require(
        network.positions is not None or not network.motes,
        "motes",
        network.motes,
        "positions = a file beside it",
    )


def _place(network: Network, folder: Path) -> None:
    """Add the motes of the positions file: ``id x y`` in each line, in m; the first line may be a heading."""
    if network.positions is not None:
        path = folder / network.positions
        try:
            lines = path.read_text().splitlines()
        except OSError as error:
            raise NetworkError(f"positions = {network.positions!r}: {error.strerror}") from None
        for number, line in enumerate(lines, 1):
            columns = line.split()
            if not columns or (number == 1 and not columns[0].isdigit()):
                continue
            try:
                node, x, y = int(columns[0]), float(columns[1]), float(columns[2])
            except (ValueError, IndexError):
                raise NetworkError(f"{path}:{number}: {line!r}: expected 'id x y'") from None
            if not network.motes or node in network.motes:
                network.mote.append(Mote(id=node, x=x, y=y, board=network.board))
        missing = set(network.motes) - {mote.id for mote in network.mote}
        _require(not missing, "motes", sorted(missing), f"ids that {network.positions} has")
        network.positions = None
    if network.root is not None:
        _require(network.root in [mote.id for mote in network.mote], "root", network.root, "the id of a mote")
        for mote in network.mote:
            mote.root = mote.root or mote.id == network.root


def _check_mote(mote: Mote) -> None:
    key = f"mote {mote.id}"
    _require(0 <= mote.id <= _NODE_MAXIMUM, "mote.id", mote.id, f"0..{_NODE_MAXIMUM}")
    for axis in ("x", "y"):
        _require(abs(getattr(mote, axis)) <= 1e7, f"{key}: {axis}", getattr(mote, axis), "metres within 1e7")
    _require(
        mote.board in BACKENDS, f"{key}: board", mote.board, f"a known board: {', '.join(sorted(BACKENDS))}"
    )
    _require(1800 <= mote.battery_mv <= 5500, f"{key}: battery_mv", mote.battery_mv, "1800..5500")
    _require(abs(mote.clock_ppm or 0.0) <= 500, f"{key}: clock_ppm", mote.clock_ppm, "-500..500")
    if mote.boot is not None:
        _duration(f"{key}: boot", mote.boot)


def _check_radio(network: Network, folder: Path, ids: set[int]) -> None:
    radio = network.radio
    _require(11 <= radio.channel <= 26, "radio.channel", radio.channel, "11..26")
    _require(0 <= radio.pan <= 65534, "radio.pan", radio.pan, "0..65534")
    _require(0 < radio.range_m < math.inf, "radio.range_m", radio.range_m, "more than 0")
    _require(0 <= radio.reception <= 1, "radio.reception", radio.reception, "0..1")
    _require(1 <= radio.exponent <= 10, "radio.exponent", radio.exponent, "1..10 (free space: 2)")
    _require(0 <= radio.reference_db <= 150, "radio.reference_db", radio.reference_db, "0..150")
    _require(0 <= radio.shadowing_db <= 30, "radio.shadowing_db", radio.shadowing_db, "0..30")
    _require(-120 <= radio.noise_dbm <= -20, "radio.noise_dbm", radio.noise_dbm, "-120..-20")
    _require(0 <= radio.capture_db <= 30, "radio.capture_db", radio.capture_db, "0..30")
    if radio.model != "matrix":
        return
    if radio.file is not None:
        radio.links = _matrix(folder / radio.file, ids)
        radio.file = None
    _require(bool(radio.links), "radio.links", radio.links, "links, or a file of them, for model = 'matrix'")
    for sender, receiver, probability in radio.links:
        _require({sender, receiver} <= ids, "radio.links", (sender, receiver), "ids of motes")
        _require(0 <= probability <= 1, "radio.links", probability, "a probability 0..1")


def _matrix(path: Path, ids: set[int]) -> list[tuple[int, int, float]]:
    """``sender receiver probability`` lines between known motes. Shorter lines say nothing and are skipped."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise NetworkError(f"radio.file = {str(path)!r}: {error.strerror}") from None
    found = []
    for number, line in enumerate(lines, 1):
        columns = line.split()
        if len(columns) < 3:
            continue
        try:
            link = int(columns[0]), int(columns[1]), float(columns[2])
        except ValueError:
            if number == 1:
                continue
            raise NetworkError(f"{path}:{number}: {line!r}: expected 'sender receiver probability'") from None
        if link[0] in ids and link[1] in ids:
            found.append(link)
    return found


def _check_environment(environment: Environment, folder: Path, ids: list[int]) -> None:
    for table in ("fields", "columns"):
        for name in getattr(environment, table):
            if name not in _ATTRIBUTES:
                raise NetworkError(
                    f"environment.{table}.{name}: no such attribute; motes can sense {', '.join(_ATTRIBUTES)}"
                )
    for name, field in environment.fields.items():
        key = f"environment.fields.{name}"
        _require(_duration(f"{key}.period", field.period) > 0, f"{key}.period", field.period, "more than 0")
        _require(0 <= field.noise < math.inf, f"{key}.noise", field.noise, "0 or more")
        for part in (field.base, *field.gradient, field.amplitude):
            _require(math.isfinite(part), key, part, "finite numbers")
    update = _duration("environment.update", environment.update)
    _require(update >= 0.01, "environment.update", environment.update, "at least 10 ms")
    if environment.trace is None:
        for key in ("columns", "nodes", "time", "start", "step"):
            value = getattr(environment, key)
            _require(
                value is None or value in ({}, []), f"environment.{key}", value, "environment.trace beside it"
            )
        return
    path = folder.resolve() / environment.trace
    _require(path.is_file(), "environment.trace", environment.trace, f"a Parquet file; {path} is none")
    _require(
        not environment.fields, "environment.fields", list(environment.fields), "either a trace or fields"
    )
    if environment.step is not None:
        step = _duration("environment.step", environment.step)
        _require(step >= 0.01, "environment.step", environment.step, "at least 10 ms")
        _require(
            environment.speedup == 1.0,
            "environment.speedup",
            environment.speedup,
            "either a step or a speedup",
        )
    _require(0 < environment.speedup < math.inf, "environment.speedup", environment.speedup, "more than 0")
    if isinstance(environment.nodes, list):
        count = len(environment.nodes)
        _require(
            count == len(ids),
            "environment.nodes",
            environment.nodes,
            f"one of its node ids for each of {len(ids)} motes",
        )
    else:
        for node in environment.nodes:
            _require(node.isdigit() and int(node) in ids, "environment.nodes", node, "ids of motes")
    environment.trace = str(path)


def _check_fault(fault: Fault, radio: Radio, ids: set[int]) -> None:
    key = f"fault {fault.kind}"
    _duration(f"{key}: at", fault.at)
    for name in FAULT_ARGUMENTS[fault.kind]:
        value = getattr(fault, name)
        if value in (None, []):
            raise NetworkError(f"{key}: {name} is missing; it takes {', '.join(FAULT_ARGUMENTS[fault.kind])}")
    for node in [node for node in (fault.mote, fault.to, *fault.motes) if node is not None]:
        _require(node in ids, f"{key}: mote", node, "the id of a mote")
    for name in ("x", "y"):
        _require(
            abs(getattr(fault, name) or 0.0) <= 1e7,
            f"{key}: {name}",
            getattr(fault, name),
            "metres within 1e7",
        )
    _require(abs(fault.ppm or 0.0) <= 500, f"{key}: ppm", fault.ppm, "-500..500")
    _require(1 <= fault.bytes <= 100_000, f"{key}: bytes", fault.bytes, "1..100000")
    moves = fault.kind == "move" and radio.model == "matrix"
    _require(not moves, f"{key}: mote", fault.mote, "a radio model with distances; a matrix has none")


def _duration(key: str, value: Duration) -> float:
    try:
        return seconds(value)
    except ValueError as error:
        raise NetworkError(f"{key}: {error}") from None


def _require(condition: bool, key: str, value: Any, expected: str) -> None:
    if not condition:
        raise NetworkError(f"{key} = {value!r}: expected {expected}")
