"""Units that numbers in a query may carry, each as a factor of the attribute's SI unit."""

from __future__ import annotations

from decimal import Decimal

#: Unit as written → (unit of attributes, factor). Case counts: mV is no MV.
UNITS: dict[str, tuple[str, Decimal]] = {
    "degC": ("degC", Decimal(1)), "C": ("degC", Decimal(1)), "°C": ("degC", Decimal(1)),
    "%RH": ("%RH", Decimal(1)), "RH": ("%RH", Decimal(1)),
    "lx": ("lx", Decimal(1)), "lux": ("lx", Decimal(1)), "klx": ("lx", Decimal(1000)),
    "V": ("V", Decimal(1)), "mV": ("V", Decimal("0.001")),
    "g": ("g", Decimal(1)), "mg": ("g", Decimal("0.001")),
    "m": ("m", Decimal(1)), "cm": ("m", Decimal("0.01")), "mm": ("m", Decimal("0.001")),
    "km": ("m", Decimal(1000)),
    "B": ("B", Decimal(1)), "kB": ("B", Decimal(1000)), "KiB": ("B", Decimal(1024)),
}  # fmt: skip

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
    )
    for name in names.split()
}


def time_of(unit: str | None) -> int | None:
    """The unit of time in ms, in any case; None: it is none."""
    return TIMES.get(unit.lower()) if unit is not None else None


def units_of(unit: str) -> list[str]:
    """How a number in this unit of attributes may be written."""
    return [written for written, (base, _) in UNITS.items() if base == unit]


def duration_text(milliseconds: Decimal | int) -> str:
    """A length of time in the largest unit that leaves a whole number: 90000 → ``90 s``."""
    value = Decimal(milliseconds)
    for name in ("week", "day", "h", "min", "s"):
        if value and value % TIMES[name] == 0:
            return f"{(value / TIMES[name]).normalize():f} {name}"
    return f"{value.normalize():f} ms"
