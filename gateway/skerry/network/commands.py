"""Commands on their way to motes, and who has answered."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any

from skerry.catalog import actions
from skerry.catalog.static_attributes import NO_STATICS, Statics
from skerry.sql.errors import QueryError, did_you_mean
from skerry_protocol.attributes import BY_NAME
from skerry_protocol.codes import CommandStatus
from skerry_protocol.commands import NO_ARGUMENT, Action
from skerry_protocol.limits import BROADCAST

#: The command that has a place for an argument.
SET_POSITION = "set_position"
#: Commands whose answers are remembered.
REMEMBERED = 1000


@dataclasses.dataclass
class Running:
    """A command that was sent. ``mote``: None, all of them; ``answers``: what each mote said."""

    token: int
    command: str
    argument: int | None
    mote: int | None
    answers: dict[int, str] = dataclasses.field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self)


def check(name: str, argument: int | None, mote: int | None, own: Statics = NO_STATICS) -> Action:
    """The command that is meant, also one that sets an attribute of ``own``. Raises QueryError."""
    setters = {entry.action.name.lower(): entry.action for entry in own.values()}
    action = setters.get(name.lower().replace("-", "_")) or actions.find_or_none(name)
    if action is None:
        known = [*actions.known(), SET_POSITION, *setters]
        raise QueryError(
            f"unknown command '{name}'", f"{did_you_mean(name.lower(), known)}commands are {', '.join(known)}"
        )
    if action.low is None or action.high is None:
        if argument is not None:
            raise QueryError(f"{action.name} takes no argument", f"leave {argument} out")
    elif argument is None:
        raise QueryError(f"{action.name} needs an argument", f"it is {action.takes}")
    elif not action.low <= argument <= action.high:
        raise QueryError(f"{action.name}({argument}) is out of range", f"it is {action.takes}")
    if mote is not None and not 0 <= mote < BROADCAST - 1:
        raise QueryError(f"{mote} is no mote", f"motes are 0 to {BROADCAST - 2}")
    return action


def is_placing(name: str) -> bool:
    """Whether a command tells a mote where it is."""
    return name.lower().replace("-", "_") == SET_POSITION


def placed(
    argument: int | None, mote: int | None, position: tuple[float, float] | None
) -> tuple[int, int, int]:
    """The mote that set_position is for, and its place in cm. Raises QueryError."""
    example = "write skerry run set_position 3.5,4 --mote 7"
    if position is None or argument is not None:
        raise QueryError("set_position needs a place, two numbers of m", example)
    if mote is None:
        raise QueryError("set_position needs a mote: all of them are not at one place", example)
    if not 0 <= mote < BROADCAST - 1:
        raise QueryError(f"{mote} is no mote", f"motes are 0 to {BROADCAST - 2}")
    farthest = BY_NAME["xpos"].maximum
    for axis, value in zip("xy", position, strict=True):
        if not abs(value) <= farthest:
            raise QueryError(f"{axis} = {value:g} is out of range", f"it is m within {farthest:,.0f}")
    x, y = (round(value * 100) for value in position)
    return mote, x, y


def place_arguments(x: int, y: int) -> bytes:
    """Those of a SET_POSITION, from cm."""
    return b"".join(value.to_bytes(4, "little", signed=True) for value in (x, y))


def arguments(action: Action, argument: int | None) -> bytes:
    """Those of a RUN."""
    value = (NO_ARGUMENT if argument is None else argument) + action.offset
    return bytes([action.number]) + value.to_bytes(4, "little", signed=True)


class Commands:
    """The latest ones by token. Not locked: its owner calls it under his lock."""

    def __init__(self) -> None:
        self._by_token: OrderedDict[int, Running] = OrderedDict()

    def add(self, running: Running) -> None:
        """One that is sent now."""
        self._by_token.pop(running.token, None)
        self._by_token[running.token] = running
        if len(self._by_token) > REMEMBERED:
            self._by_token.popitem(last=False)

    def answer(self, node: int, token: int, status: int) -> None:
        """A COMMAND_ACK. Those of commands that nobody remembers change nothing."""
        if token in self._by_token:
            known = {int(one): one.name.lower().replace("_", " ") for one in CommandStatus}
            self._by_token[token].answers[node] = known.get(status, f"status {status}")

    def find(self, token: int) -> Running | None:
        """One of them."""
        return self._by_token.get(token)
