"""Units that numbers in a query may carry, each as a factor of the attribute's SI unit."""

from __future__ import annotations

from decimal import Decimal

#: Of attributes that are times, and how numbers of it are written in messages.
TIME = "s"
TIME_NAMES = ("ms", "s", "min", "h", "day", "week", "month", "year")
#: Unit of time → ms.
TIMES: dict[str, int] = {
    name: milliseconds
    for names, milliseconds in (
        ("ms millisecond milliseconds", 1),
        ("s sec secs second seconds", 1000),
        ("min mins minute minutes", 60_000),
        ("h hour hours", 3_600_000),
        ("d day days", 86_400_000),
        ("w week weeks", 604_800_000),
        # Of no month in particular: a duration has no beginning in a calendar.
        ("month months", 2_592_000_000),
        ("year years", 31_536_000_000),
    )
    for name in names.split()
}

#: Unit as written → (unit of attributes, factor). Case counts: mV is no MV.
UNITS: dict[str, tuple[str, Decimal]] = {
    "degC": ("degC", Decimal(1)), "C": ("degC", Decimal(1)), "°C": ("degC", Decimal(1)),
    "%RH": ("%RH", Decimal(1)), "RH": ("%RH", Decimal(1)),
    "lx": ("lx", Decimal(1)), "lux": ("lx", Decimal(1)), "klx": ("lx", Decimal(1000)),
    "V": ("V", Decimal(1)), "mV": ("V", Decimal("0.001")),
    "g": ("g", Decimal(1)), "mg": ("g", Decimal("0.001")),
    "m": ("m", Decimal(1)), "cm": ("m", Decimal("0.01")), "mm": ("m", Decimal("0.001")),
    "km": ("m", Decimal(1000)),
    "mgauss": ("mgauss", Decimal(1)), "gauss": ("mgauss", Decimal(1000)), "uT": ("mgauss", Decimal(10)),
    "J": ("J", Decimal(1)), "mJ": ("J", Decimal("0.001")),
    "B": ("B", Decimal(1)), "kB": ("B", Decimal(1000)), "KiB": ("B", Decimal(1024)),
}  # fmt: skip


def time_of(unit: str | None) -> int | None:
    """The unit of time in ms, in any case; None: it is none."""
    return TIMES.get(unit.lower()) if unit is not None else None


def unit_of(written: str) -> tuple[str, Decimal] | None:
    """The unit of attributes that a number carries, and the factor to it; None: it is none."""
    if written in UNITS:
        return UNITS[written]
    milliseconds = time_of(written)
    return None if milliseconds is None else (TIME, Decimal(milliseconds) / 1000)


def units_of(unit: str | None = None) -> list[str]:
    """How a number in this unit of attributes, or in any, may be written."""
    found = [written for written, (base, _) in UNITS.items() if unit in (base, None)]
    return [*found, *TIME_NAMES] if unit in (TIME, None) else found


def duration_text(milliseconds: Decimal | int) -> str:
    """A length of time in the largest unit that leaves a whole number: 90000 → ``90 s``."""
    value = Decimal(milliseconds)
    for name in ("week", "day", "h", "min", "s"):
        if value and value % TIMES[name] == 0:
            return f"{(value / TIMES[name]).normalize():f} {name}"
    return f"{value.normalize():f} ms"
