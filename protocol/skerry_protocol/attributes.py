"""The attributes a mote can acquire: number on the wire, SI unit, scale, range, cost.

A value on the wire is an integer; its SI value is ``integer * 10**-digits``. Costs are those of the
IRIS sensor board at 3 V, from the data sheets named beside each group.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ValueFormat(Enum):
    """How a value is packed in a result row: code on the wire, ``struct`` letter, bytes."""

    U8 = (1, "B", 1)
    I8 = (2, "b", 1)
    U16 = (3, "H", 2)
    I16 = (4, "h", 2)
    I32 = (5, "i", 4)

    def __init__(self, code: int, letter: str, size: int) -> None:
        self.code = code
        self.letter = letter
        self.size = size

    @property
    def minimum(self) -> int:
        """Smallest integer the format holds."""
        return 0 if self.letter.isupper() else -(1 << (8 * self.size - 1))

    @property
    def maximum(self) -> int:
        """Largest integer the format holds."""
        return (1 << (8 * self.size - (0 if self.letter.isupper() else 1))) - 1

    @classmethod
    def from_code(cls, code: int) -> ValueFormat:
        """The format of a wire code. Raises ValueError for an unknown one."""
        for member in cls:
            if member.code == code:
                return member
        raise ValueError(f"value format {code} is unknown: expected one of 1..5")


@dataclass(frozen=True)
class Attribute:
    """One attribute. ``energy`` in joule and ``sample_ms`` in ms are for one acquisition. ``held_ms``: how long it takes where
    the sensor stays powered; None: it cannot, or is no quicker."""

    number: int
    name: str
    format: ValueFormat
    unit: str
    digits: int
    minimum: float
    maximum: float
    energy: float
    sample_ms: float
    constant: bool
    description: str
    held_ms: float | None = None


def _attribute(
    number: int,
    name: str,
    format: ValueFormat,
    unit: str,
    digits: int,
    bounds: tuple[float, float],
    description: str,
    *,
    energy: float = 0.0,
    sample_ms: float = 0.0,
    held_ms: float | None = None,
    constant: bool = False,
) -> Attribute:
    return Attribute(
        number, name, format, unit, digits, *bounds, energy, sample_ms, constant, description, held_ms
    )


_F = ValueFormat

# fmt: off
#: Numbers are what the radio carries and never change; a new attribute that is sampled takes the next free one
#: below 30, others one from 32 on.
ATTRIBUTES: tuple[Attribute, ...] = (
    _attribute(0, "nodeid", _F.U16, "", 0, (0, 65534), "the mote's short address", constant=True),
    _attribute(1, "parent", _F.U16, "", 0, (0, 65535), "short address of the parent; NULL without one"),
    _attribute(2, "level", _F.U8, "", 0, (0, 254), "hops to the root, whose level is 0"),
    _attribute(3, "epoch", _F.I32, "", 0, (0, 2**31 - 1), "number of the query's epoch"),
    # TSL2561 (TAOS059): 0.24 mA for an integration of 402 ms at 3 V.
    _attribute(4, "light", _F.U16, "lx", 0, (0, 40000), "illuminance (TSL2561; a CC2538's TEMT6000 up to 5,000 lx)",
               energy=290e-6, sample_ms=402),
    # SHT21 (Sensirion, May 2010): 0.3 mA at 3 V; 14 bit temperature 85 ms, 12 bit humidity 29 ms.
    _attribute(5, "temp", _F.I16, "degC", 2, (-40, 125), "air temperature (SHT21; a CC2538's LM60 up to 122 °C)",
               energy=76.5e-6, sample_ms=85),
    _attribute(6, "humidity", _F.I16, "%RH", 2, (-6, 119), "relative humidity (SHT21; a CC2538's HIH-5030)",
               energy=26.1e-6, sample_ms=29),
    # ATmega1281 ADC (2549Q table 31-1): 13 conversion clocks at 125 kHz.
    _attribute(7, "voltage", _F.U16, "V", 3, (1.8, 5.5), "battery voltage (band gap against AVcc; a CC2538's up to 3.56 V)",
               energy=0.5e-6, sample_ms=0.3),
    # ADXL202 (rev. B): 0.6 mA, powered 16 ms ahead of the conversion.
    _attribute(8, "accel_x", _F.I16, "g", 3, (-2, 2), "acceleration along x (ADXL202)",
               energy=29e-6, sample_ms=17, held_ms=0.2),
    _attribute(9, "accel_y", _F.I16, "g", 3, (-2, 2), "acceleration along y (ADXL202)",
               energy=29e-6, sample_ms=17, held_ms=0.2),
    _attribute(10, "xpos", _F.I32, "m", 2, (-7.5e6, 7.5e6), "position, east", constant=True),
    _attribute(11, "ypos", _F.I32, "m", 2, (-7.5e6, 7.5e6), "position, north", constant=True),
    _attribute(12, "free_ram", _F.U16, "B", 0, (0, 65535), "RAM between heap start and stack"),
    _attribute(13, "queue_length", _F.U8, "", 0, (0, 255), "records waiting to be sent"),
)
#: Constants of a mote's place, kept by it and set by commands. ``*`` leaves them out.
PLACE_ATTRIBUTES: tuple[Attribute, ...] = (
    _attribute(32, "room", _F.U16, "", 0, (0, 65535), "number of its room", constant=True),
    _attribute(33, "floor", _F.I16, "", 0, (-100, 1000), "number of its floor", constant=True),
    _attribute(34, "group", _F.U16, "", 0, (0, 65535), "number of its group", constant=True),
)
#: Of the mote itself. ``*`` leaves it out.
MADE_ATTRIBUTES: tuple[Attribute, ...] = (
    _attribute(41, "board", _F.U8, "", 0, (0, 255), "what it is: 1 an IRIS mote, 2 one with a CC2538", constant=True),
)
#: How many attributes of their own users may have at once, and the number of the first.
STATICS_MAXIMUM, STATIC_FIRST = 10, 48
#: What users name with CREATE ATTRIBUTE: kept by each mote, NULL until it is set. The name here is the radio's; ``*`` leaves them out.
STATIC_ATTRIBUTES: tuple[Attribute, ...] = tuple(
    _attribute(STATIC_FIRST + n, f"static_{n}", _F.I16, "", 0, (-32767, 32767), "a static attribute that users have named", constant=True)
    for n in range(STATICS_MAXIMUM)
)
#: Of sensor boards that no supported mote carries: NULL everywhere, so that old queries run. ``*`` leaves them out.
ABSENT_ATTRIBUTES: tuple[Attribute, ...] = (
    # HMC1002 on the MTS310 (Crossbow): 2 mA at 3 V for 17 ms.
    _attribute(20, "mag_x", _F.I16, "mgauss", 0, (-2000, 2000), "magnetic field along x", energy=102e-6, sample_ms=17),
    _attribute(21, "mag_y", _F.I16, "mgauss", 0, (-2000, 2000), "magnetic field along y", energy=102e-6, sample_ms=17),
    # Microphone and tone detector of the MTS310: 0.5 mA at 3 V (TinyDB 2005, table III).
    _attribute(22, "noise", _F.U16, "", 0, (0, 1023), "loudness at the microphone", energy=1.5e-6, sample_ms=1),
    _attribute(23, "tones", _F.U8, "", 0, (0, 1), "1: a tone of 4 kHz is heard", energy=1.5e-6, sample_ms=1),
)
#: How the mote itself is doing. ``*`` leaves them out.
HEALTH_ATTRIBUTES: tuple[Attribute, ...] = (
    _attribute(14, "link", _F.U16, "", 2, (0, 1), "share of frames to the parent acknowledged lately; NULL without one"),
    _attribute(15, "neighbours", _F.U8, "", 0, (0, 255), "motes that it hears"),
    _attribute(16, "radio_duty", _F.U16, "", 4, (0, 1), "share of the time since boot with the radio on"),
    _attribute(17, "resets", _F.U16, "", 0, (0, 65535), "times it has started, kept in EEPROM"),
    _attribute(18, "uptime", _F.I32, "s", 0, (0, 2**31 - 1), "time since it started"),
    _attribute(19, "dropped", _F.U16, "", 0, (0, 65535), "records lost to a full queue since it started"),
    _attribute(35, "energy", _F.I32, "J", 3, (0, 2e6), "what radio and standby have taken since it started, estimated"),
    _attribute(39, "contention", _F.U8, "", 0, (0, 31), "how often of late the channel was taken or a frame not acknowledged"),
)
#: What a row of a mote says of itself; motes do not acquire them, and the gateway knows them with each row. ``*`` leaves them out.
TALLY_ATTRIBUTES: tuple[Attribute, ...] = (
    _attribute(37, "combined", _F.U16, "", 0, (1, 32768), "samples that the row is the average of (QUEUE WINAVG); 1 otherwise"),
    _attribute(38, "left_out", _F.U16, "", 0, (0, 65535), "rows of the query that its mote left out since the row before"),
)
#: Of the network that a mote is in; the gateway knows it with each row, too. ``*`` leaves it out.
NETWORK_ATTRIBUTES: tuple[Attribute, ...] = (
    _attribute(40, "via", _F.U16, "", 0, (0, 65534), "short address of the root that the row came through"),
)
#: Of the event that started the query; NULL in queries that wait for none. Written event.nodeid and so on.
EVENT_ATTRIBUTES: tuple[Attribute, ...] = (
    _attribute(24, "event.nodeid", _F.U16, "", 0, (0, 65534), "short address of the mote that raised the event"),
    _attribute(25, "event.xpos", _F.I32, "m", 2, (-7.5e6, 7.5e6), "its position, east"),
    _attribute(26, "event.ypos", _F.I32, "m", 2, (-7.5e6, 7.5e6), "its position, north"),
    _attribute(27, "event.network_time", _F.I32, "s", 0, (0, 2**31 - 1), "network time of the event"),
    _attribute(36, "event.value", _F.I32, "", 0, (-(2**31) + 1, 2**31 - 1), "what the query that raised it said with SIGNAL"),
)
# fmt: on

BY_NAME: dict[str, Attribute] = {
    attribute.name: attribute
    for attribute in (
        *ATTRIBUTES,
        *PLACE_ATTRIBUTES,
        *MADE_ATTRIBUTES,
        *STATIC_ATTRIBUTES,
        *HEALTH_ATTRIBUTES,
        *TALLY_ATTRIBUTES,
        *NETWORK_ATTRIBUTES,
        *ABSENT_ATTRIBUTES,
    )
}
EVENT_BY_NAME: dict[str, Attribute] = {attribute.name: attribute for attribute in EVENT_ATTRIBUTES}
BY_NUMBER: dict[int, Attribute] = {
    attribute.number: attribute for attribute in (*BY_NAME.values(), *EVENT_ATTRIBUTES)
}
