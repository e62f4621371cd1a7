"""Static attributes that users have made: what they are called, which of the motes' ten places each has, how a value is set.

What never changes on a mote is static: its address, position, board, room, floor and group, and what users add with CREATE ATTRIBUTE.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from skerry_protocol.attributes import BY_NAME, PLACE_ATTRIBUTES, STATIC_ATTRIBUTES, STATIC_FIRST, ValueFormat
from skerry_protocol.commands import ACTION_BY_NAME, Action

#: Lies between a value and what motes are sent of it, as 0 is NULL there.
_ABOVE = 32768
#: What motes are sent for NULL, and the largest value, which is also the negative of the smallest.
NULL, VALUE_MAXIMUM = -_ABOVE, _ABOVE - 1


class StaticError(ValueError):
    """An attribute that cannot be made, or has no such value; ``hint`` says what would be right."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


@dataclass(frozen=True, slots=True)
class StaticAttribute:
    """One that a user has made. ``number``: the motes'. ``again``: its place had another one before, whose values are none of its."""

    number: int
    name: str
    unit: str
    user: str
    created: float
    again: bool = False

    @property
    def action(self) -> Action:
        """The command that sets it."""
        return Action(
            ACTION_BY_NAME["set_static"].number, f"set_{self.name}", -VALUE_MAXIMUM, VALUE_MAXIMUM,
            f"the static attribute {self.name}, kept", (self.number - STATIC_FIRST) * 65536 + _ABOVE,
        )  # fmt: skip


#: By name in lower case.
Statics = Mapping[str, StaticAttribute]
NO_STATICS: Statics = {}


def statics_of(tuples: Iterable[Iterable[Any]]) -> Statics:
    """Those that were told to another process as tuples of their fields."""
    made = [StaticAttribute(*one) for one in tuples]
    return {entry.name.lower(): entry for entry in made}


class StaticAttributes:
    """Those that there are. Not locked: its owner calls it under his lock."""

    def __init__(self) -> None:
        self._by_name: dict[str, StaticAttribute] = {}
        #: Places that have had one.
        self._used: set[int] = set()

    def all(self) -> Statics:
        """By name in lower case, in the order in which they were made; what is given is not changed afterwards."""
        return self._by_name

    def make(self, name: str, unit: str, user: str, now: float) -> StaticAttribute:
        """A new one, in a place that had none before, if there is one. Raises StaticError."""
        taken = {entry.number for entry in self._by_name.values()}
        free = [entry.number for entry in STATIC_ATTRIBUTES if entry.number not in taken]
        if not free:
            known = ", ".join(entry.name for entry in self._by_name.values())
            raise StaticError(
                f"there is no place for '{name}': motes have {len(STATIC_ATTRIBUTES)}",
                f"drop one of {known}, as in DROP ATTRIBUTE {next(reversed(self._by_name))}",
            )
        number = min(free, key=lambda one: (one in self._used, one))
        made = StaticAttribute(number, name, unit, user, now, number in self._used)
        self._by_name = {**self._by_name, name.lower(): made}
        self._used.add(number)
        return made

    def drop(self, name: str) -> None:
        """End one. KeyError: there is none."""
        self._by_name = {key: entry for key, entry in self._by_name.items() if key != name.lower()}

    def action(self, command: str) -> Action | None:
        """The command of one, as in set_rack; None: it is none's."""
        name = command.lower().removeprefix("set_").removeprefix("set-")
        found = self._by_name.get(name) if name != command.lower() else None
        return None if found is None else found.action

    def number(self, name: str) -> int | None:
        """The motes' number of what a command sets, the built-in ones included; None: it is none."""
        own, built_in = self._by_name.get(name.lower()), BY_NAME.get(name.lower())
        if own is not None:
            return own.number
        return built_in.number if built_in in PLACE_ATTRIBUTES and built_in is not None else None

    def name(self, number: int) -> str | None:
        """What the attribute of this number is called; None: there is none."""
        names = {entry.number: entry.name for entry in PLACE_ATTRIBUTES}
        names.update((entry.number, entry.name) for entry in self._by_name.values())
        return names.get(number)

    def rows(self) -> list[dict[str, Any]]:
        """To be kept: also places that had one."""
        own = [{**asdict(entry), "again": int(entry.again)} for entry in self._by_name.values()]
        gone = self._used - {entry.number for entry in self._by_name.values()}
        return own + [
            {"number": number, "name": "", "unit": "", "user": "", "created": 0.0, "again": 1} for number in sorted(gone)
        ]  # fmt: skip

    def restore(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """What :meth:`rows` said."""
        kept = list(rows)
        self._used = {row["number"] for row in kept}
        made = [StaticAttribute(**{**row, "again": bool(row["again"])}) for row in kept if row["name"]]
        self._by_name = {entry.name.lower(): entry for entry in sorted(made, key=lambda entry: entry.created)}


def setting(number: int, value: int | None) -> tuple[Action, int]:
    """The command that gives an attribute this value, and its argument; None: NULL, and what a mote has that was told nothing."""
    for entry in PLACE_ATTRIBUTES:
        if entry.number == number:
            return ACTION_BY_NAME[f"set_{entry.name}"], value or 0
    return StaticAttribute(number, "", "", "", 0.0).action, NULL if value is None else value


def checked(name: str, number: int, value: int) -> int:
    """A value that the attribute of this number can have. Raises StaticError."""
    action, _ = setting(number, value)
    assert action.low is not None
    assert action.high is not None
    if not action.low <= value <= action.high:
        raise StaticError(f"{name} = {value} is out of range", f"it is {action.low} to {action.high}")
    return value


def told(statics: Iterable[Mapping[str, int]]) -> dict[int, int]:
    """What a mote reports of its constants: values by number."""
    signed = {
        entry.number for entry in (*PLACE_ATTRIBUTES, *STATIC_ATTRIBUTES) if entry.format is ValueFormat.I16
    }
    return {
        one["attribute"]: one["value"] - 65536 * (one["value"] > 32767 and one["attribute"] in signed)
        for one in statics
    }  # fmt: skip
