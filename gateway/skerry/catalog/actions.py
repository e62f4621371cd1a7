"""The commands that queries may run: those of this tree, and those that a folder of extensions adds."""

from __future__ import annotations

from collections.abc import Iterable

from skerry_protocol.commands import ACTION_BY_NAME, Action
from skerry_protocol.extensions import Declared

#: Static attributes have commands of their own names (:mod:`skerry.catalog.static_attributes`).
_KNOWN: dict[str, Action] = {name: action for name, action in ACTION_BY_NAME.items() if name != "set_static"}


def extend(found: Iterable[Declared]) -> None:
    """Take the commands of extensions in. ValueError: one has a name that is taken."""
    for one in found:
        if one.kind != "COMMAND":
            continue
        if one.name.lower() in ACTION_BY_NAME:
            raise ValueError(f"{one.path}: command '{one.name}' exists already: give it another name")
        takes = (one.low, one.high) != (0, 0)
        low, high = (one.low, one.high) if takes else (None, None)
        _KNOWN[one.name.lower()] = Action(one.number, one.name, low, high, one.description)


def known() -> Iterable[str]:
    """All names."""
    return _KNOWN


def find_or_none(name: str) -> Action | None:
    """By name, in any case; ``-`` is taken for ``_``."""
    return _KNOWN.get(name.lower().replace("-", "_"))


def find(name: str) -> Action:
    """The same of a name that is known. KeyError: it is not."""
    return _KNOWN[name.lower().replace("-", "_")]
