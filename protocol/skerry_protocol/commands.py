"""The commands that a query's OUTPUT ACTION and ``skerry run`` name, and the events that motes raise by themselves."""

from __future__ import annotations

from binascii import crc_hqx
from dataclasses import dataclass

from skerry_protocol.attributes import STATICS_MAXIMUM


@dataclass(frozen=True, slots=True)
class Action:
    """One command: a file of that name in ``firmware/commands``. ``low`` .. ``high``: its argument, None: it takes none."""

    number: int
    name: str
    low: int | None
    high: int | None
    description: str
    #: What is added to the argument on its way.
    offset: int = 0

    @property
    def takes(self) -> str:
        """What its argument is, for people."""
        return self.description if self.low is None else f"{self.low} to {self.high}: {self.description}"


#: Numbers are what the radio carries and never change; those from 128 on are for commands from outside this tree.
ACTIONS: tuple[Action, ...] = (
    Action(1, "leds", 0, 7, "1 red, 2 green and 4 yellow, added up"),
    Action(2, "power_on", None, None, "sets the actuator pin high"),
    Action(3, "power_off", None, None, "sets the actuator pin low"),
    Action(4, "set_room", 0, 65535, "the attribute room, kept"),
    Action(5, "set_floor", -100, 1000, "the attribute floor, kept"),
    Action(6, "set_group", 0, 65535, "the attribute group, kept"),
    Action(7, "radio_power", -17, 3, "output of the radio in dBm, until the mote restarts"),
    Action(
        8,
        "set_static",
        0,
        STATICS_MAXIMUM * 65536 - 1,
        "65536 times a static attribute's place, and 32768 + its value, 0 for NULL; kept",
    ),
)
ACTIONS_OUTSIDE = 128
#: Stands for the argument of a command that takes none.
NO_ARGUMENT = 0

ACTION_BY_NAME: dict[str, Action] = {action.name: action for action in ACTIONS}

#: Events that motes raise by themselves, where a query waits for them.
MOTE_EVENTS: dict[str, str] = {
    "boot": "the mote has started, and has its queries",
    "battery_low": "the battery has fallen below 2.2 V",
    "button": "the button pin was pulled low",
}


def event_number(name: str) -> int:
    """How motes call an event: the CRC-16 of its name in lower case, with ``-`` taken for ``_``."""
    return crc_hqx(name.lower().replace("-", "_").encode(), 0xFFFF)
