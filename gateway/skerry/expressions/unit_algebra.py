"""Units of sums, products and quotients. A unit is a name ("" for none), or names with exponents, as in ``degC·lx^-1``."""

from __future__ import annotations

from skerry.expressions.expression import MIXED, PLAIN
from skerry.sql.units import TIME

#: Of moments: what lies between two of them is in s.
UTC = "UTC"
_TIMES, _TO_THE = "·", "^"


def sum_unit(a: str, b: str) -> str:
    """Of different units the sum has none: it is an index of its own."""
    if MIXED in (a, b):
        return MIXED
    if b in (a, PLAIN):
        return a
    if {a, b} == {UTC, TIME}:
        return UTC
    return b if a == PLAIN else ""


def difference_unit(a: str, b: str) -> str:
    """The unit of ``a - b``."""
    return TIME if a == b == UTC else sum_unit(a, b)


def product_unit(a: str, b: str, power: int = 1) -> str:
    """The unit of ``a * b ** power``."""
    if MIXED in (a, b):
        return MIXED
    if a == b == PLAIN:
        return PLAIN
    exponents = dict(_exponents(a))
    for name, exponent in _exponents(b):
        exponents[name] = exponents.get(name, 0) + power * exponent
    parts = [(name, exponent) for name, exponent in sorted(exponents.items()) if exponent]
    return _TIMES.join(name if exponent == 1 else f"{name}{_TO_THE}{exponent}" for name, exponent in parts)


def is_derived(unit: str) -> bool:
    """Whether it is put together of others, and no unit that an attribute has."""
    return _TIMES in unit or _TO_THE in unit


def _exponents(unit: str) -> list[tuple[str, int]]:
    parts = [] if unit in (PLAIN, "") else unit.split(_TIMES)
    return [(name, int(exponent or 1)) for name, _, exponent in (part.partition(_TO_THE) for part in parts)]
