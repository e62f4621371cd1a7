"""What a network description says, as data: one structure for each of its tables. :mod:`skerry_testbed.network` reads and checks it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from skerry_protocol.mac import CHANNELS_DEFAULT

Duration = str | int | float


class NetworkError(ValueError):
    """A description that cannot be; the message names file, key and value."""


class Mote(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One mote: position in m, crystal error in ppm, battery in mV, time of power-on.

    ``path`` is where it goes: ``(time, x, y)``, in a straight line from one to the next, the first from ``x``, ``y`` at 0 s.
    ``temperature`` is its crystal's, ``(time, °C)``, linear between them."""

    id: int
    x: float
    y: float
    board: str = "iris"
    root: bool = False
    boot: Duration | None = None
    clock_ppm: float | None = None
    battery_mv: float = 3000.0
    room: int = 0
    floor: int = 0
    group: int = 0
    #: Values of the network's ``attributes``, by name.
    attributes: dict[str, int] = {}
    path: list[tuple[Duration, float, float]] = []
    temperature: list[tuple[Duration, float]] = []


class Bursts(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Losses in bursts (Gilbert 1960, Elliott 1963, in continuous time): links are good and bad in turn, for exponentially
    distributed times with these means. While bad, a frame of 100 bytes arrives ``reception`` times as often as it would
    otherwise. ``symmetric``: both directions of a link are bad together, as when somebody stands between."""

    good: Duration
    bad: Duration
    reception: float = 0.0
    symmetric: bool = True


class LinkBursts(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The same of one link, from ``mote`` to ``to``, instead of what holds for all."""

    mote: int
    to: int
    good: Duration
    bad: Duration
    reception: float = 0.0


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
    channels: list[int] = msgspec.field(default_factory=lambda: list(CHANNELS_DEFAULT))
    pan: int = 0x5359
    asymmetry_db: float | None = None
    bursts: Bursts | None = None
    link_bursts: list[LinkBursts] = []


class Interference(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Something else that sends: at ``x``, ``y`` with ``power_dbm``, or heard by all motes with ``level_dbm``. It is on for a
    share ``duty`` of the time between ``begin`` and ``end``, ``burst`` at a time on average."""

    channel: int | None = None
    x: float | None = None
    y: float | None = None
    power_dbm: float | None = None
    level_dbm: float | None = None
    duty: float = 1.0
    burst: Duration = "10 ms"
    begin: Duration = 0
    end: Duration | None = None


class Crystals(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How crystals drift with temperature: ``parabola`` (ppm/°C²) times the square of the distance to ``turnover`` (°C) is
    added to each mote's error; the default is a 32,768 Hz tuning fork's. Motes without a ``temperature`` of their own take this
    one: ``(time, °C)``, or what the environment's ``temp`` is where they stand."""

    temperature: Literal["environment"] | list[tuple[Duration, float]] = "environment"
    parabola: float = -0.034
    turnover: float = 25.0


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
        "press",
        "release",
        "battery_drained",
        "link_down",
        "link_up",
        "partition",
        "move",
        "clock_drift",
        "serial_noise",
        "mass_reboot",
    ]
    mote: int | None = None
    to: int | None = None
    motes: list[int] = []
    x: float | None = None
    y: float | None = None
    ppm: float | None = None
    bytes: int = 64
    one_way: bool = False
    share: float = 1.0
    within: Duration = 0


class Query(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A question to the network: asked ``at`` a time, or as soon after it as the root answers, by ``user``, and stopped at ``until``."""

    sql: str
    at: Duration = 0
    until: Duration | None = None
    user: str = "testbed"


class Network(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A whole testbed run."""

    seed: int = 1
    name: str = "network"
    mote: list[Mote] = []
    positions: str | None = None
    motes: list[int] = []
    root: int | None = None
    board: str = "iris"
    #: Static attributes of users, in the order of motes' places for them.
    attributes: list[str] = []
    clock_ppm: float = 40.0
    boot_spread: Duration = "2 s"
    radio: Radio = msgspec.field(default_factory=Radio)
    environment: Environment = msgspec.field(default_factory=Environment)
    interference: list[Interference] = []
    crystal: Crystals | None = None
    fault: list[Fault] = []
    query: list[Query] = []
    tables: str | None = None
    firmware: str | dict[str, str] | None = None

    def image(self, board: str) -> Path | None:
        """The ELF file that motes of a board run, where the description names one."""
        named = self.firmware.get(board) if isinstance(self.firmware, dict) else self.firmware
        return None if named is None else Path(named)


#: Arguments each fault kind needs.
FAULT_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "kill": ("mote",), "reboot": ("mote",),
    "press": ("mote",), "release": ("mote",), "battery_drained": ("mote",), "link_down": ("mote", "to"), "link_up": ("mote", "to"),
    "partition": ("motes",), "move": ("mote", "x", "y"), "clock_drift": ("mote", "ppm"), "serial_noise": (), "mass_reboot": (),
}  # fmt: skip
#: Arguments that it takes besides.
FAULT_OPTIONS: dict[str, tuple[str, ...]] = {
    "link_down": ("one_way",), "link_up": ("one_way",), "serial_noise": ("bytes",), "mass_reboot": ("motes", "share", "within"),
}  # fmt: skip
#: Keys of [radio] that only these models read.
MODEL_KEYS: dict[str, tuple[str, ...]] = {
    "disc": ("range_m", "reception"), "log-distance": ("exponent", "reference_db", "shadowing_db", "asymmetry_db"),
    "matrix": ("file", "links"),
}  # fmt: skip
