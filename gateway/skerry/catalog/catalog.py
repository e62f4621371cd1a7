"""The catalog: motes as their own STATUS packets describe them, attributes with who can acquire them, events that come.

In memory and without a clock: the daemon feeds it decoded packets and keeps it as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from skerry.catalog.event_rates import Events
from skerry.catalog.flash import FlashReports
from skerry.catalog.invariants import invariant_name
from skerry.catalog.namesakes import Namesakes
from skerry.catalog.static_attributes import NO_STATICS, Statics, told
from skerry_protocol.attributes import (
    BY_NAME,
    BY_NUMBER,
    STATIC_ATTRIBUTES,
    STATIC_FIRST,
    STATICS_MAXIMUM,
    Attribute,
)
from skerry_protocol.bytecode import ATTRIBUTE_OWN
from skerry_protocol.limits import NO_LEVEL, NO_NODE

#: Reports of one address that came through another root than the one before, so many in so many s, are two motes'.
MOVES, MOVES_S = 4, 600.0
#: A mote that has not been heard for so long, in s, is taken to be gone.
GONE_S = 86_400.0
#: So long after its start, in s, a mote's reason to reset itself is news.
TOLD_S = 86_400
BOARDS = {1: "iris", 2: "cc2538", 255: "host"}


@dataclass(frozen=True, slots=True)
class Mote:
    """One mote at its last report, in SI: positions m, voltage V, times s, shares 0..1.

    ``received``: UTC in seconds since 1970 at the gateway; ``reported``: network time, s. ``parent`` and
    ``level`` are None without a way to the root; the root itself has level 0 and no parent. ``attributes``:
    bit n set: attribute number n can be acquired here. Counters run since the mote's boot.
    """

    nodeid: int
    board: str
    received: float
    reported: int
    boots: int
    reset_cause: int
    attributes: int
    parent: int | None
    level: int | None
    link: float
    neighbours: int
    query_version: int
    xpos: float
    ypos: float
    voltage: float | None
    free_ram: int
    queue_length: int
    radio_on: float
    uptime: int
    rows: int
    dropped: int
    sent: int
    repeated: int
    malformed: int
    loops: int = 0
    #: No two motes have one.
    factory: int = 0
    #: The root that this report came through; None: it was not said.
    root: int | None = None
    #: What commands have set here, by the attribute's number.
    statics: Mapping[int, int] = field(default_factory=dict)
    #: Name of what was broken so that the firmware ended its run before this one; None: nothing.
    invariant: str | None = None

    @property
    def radio_duty_cycle(self) -> float | None:
        """Share of the time since boot that the radio was on; None in the first second."""
        return self.radio_on / self.uptime if self.uptime else None

    def acquires(self, attribute: Attribute) -> bool:
        """Whether the mote can acquire the attribute; otherwise it reports NULL."""
        if STATIC_FIRST <= attribute.number < STATIC_FIRST + STATICS_MAXIMUM:
            return attribute.number in self.statics
        return attribute.number >= ATTRIBUTE_OWN or bool(self.attributes >> attribute.number & 1)


class Catalog:
    """Motes by their short address."""

    def __init__(self) -> None:
        self._motes: dict[int, Mote] = {}
        #: As they were last to be kept, by their reports.
        self._rows: dict[int, tuple[Mote, dict[str, Any]]] = {}
        self._heard: dict[int, float] = {}
        self.events = Events()
        #: Not kept over a restart: motes say it again.
        self.flash = FlashReports()
        #: Seconds of network time in one of UTC, of emulated motes.
        self.speed = 1.0
        self._namesakes = Namesakes()
        #: The root that each one's last report came through, and the latest changes of it: UTC in s, before, after.
        self._through: dict[int, int | None] = {}
        self._moves: dict[int, list[tuple[float, int, int]]] = {}

    def update(self, status: Mapping[str, Any], received: float, root: int | None = None) -> Mote:
        """Take in the body of a decoded STATUS packet that came through ``root``. Older reports of the same boot change nothing:
        packets may overtake each other on their way."""
        mote = _mote(status, received, root)
        self._came_through(mote.nodeid, root, received)
        self._namesakes.report(mote.nodeid, mote.factory, received)
        known = self._motes.get(mote.nodeid)
        same = known is not None and (known.factory, known.boots) == (mote.factory, mote.boots)
        if known is not None and same and known.uptime > mote.uptime:
            return known
        self._motes[mote.nodeid] = mote
        return mote

    def _came_through(self, nodeid: int, root: int | None, now: float) -> None:
        before = self._through.get(nodeid)
        self._through[nodeid] = root
        if before not in (None, root):
            assert before is not None
            assert root is not None
            moves = [*self._moves.get(nodeid, ()), (now, before, root)]
            self._moves[nodeid] = moves[-MOVES:]

    def clashes(self, now: float) -> dict[int, tuple[int, int]]:
        """Short addresses that two motes in different networks seem to have, and their roots: no mote moves to and fro as often.
        ``now``: UTC in s."""
        return {
            nodeid: (min(moves[-1][1:]), max(moves[-1][1:]))
            for nodeid, moves in self._moves.items()
            if len(moves) == MOVES and now - moves[0][0] < MOVES_S
        }

    def broken(self) -> dict[int, str]:
        """Motes that have reset themselves within the last day before their latest report, and the invariants that were broken."""
        return {
            mote.nodeid: mote.invariant
            for mote in self._motes.values()
            if mote.invariant is not None and mote.uptime < TOLD_S
        }

    def tell_namesake(self, nodeid: int, factory: int, other: int, now: float) -> None:
        """A mote of this factory number has heard of another that has its address; 0: of that one nothing else is known. ``now``: UTC
        in s."""
        known = self._motes.get(nodeid)
        other = other or (known.factory if known is not None else 0)
        self._namesakes.tell(nodeid, (factory, other), now)

    def namesakes(self, now: float) -> dict[int, tuple[int, int]]:
        """Short addresses that two motes of a network have, and their factory numbers. ``now``: UTC in s."""
        return self._namesakes.known(now, self.speed)

    def hear(self, motes: Iterable[int], now: float) -> None:
        """Packets that these motes made have come; ``now``: UTC in s."""
        self._heard.update(dict.fromkeys(motes, now))

    def heard(self, nodeid: int) -> float:
        """When a mote's last packet came, UTC in s; 0: never."""
        mote = self._motes.get(nodeid)
        return max(self._heard.get(nodeid, 0.0), mote.received if mote else 0.0)

    def unheard(self, nodeid: int, now: float) -> float:
        """For how long nothing has come of a mote, in s of network time; ``now``: UTC in s."""
        return (now - self.heard(nodeid)) * self.speed

    def all(self) -> list[Mote]:
        """All motes by address."""
        return [self._motes[nodeid] for nodeid in sorted(self._motes)]

    def mote(self, nodeid: int) -> Mote | None:
        """One mote, None when it has never reported."""
        return self._motes.get(nodeid)

    def root(self) -> Mote | None:
        """The root, None when it has never reported."""
        return next((mote for mote in self._motes.values() if mote.level == 0), None)

    def places(self) -> dict[int, tuple[int, int]]:
        """Where motes stand that have been told, in dm. One that has not been says (0, 0); so does a root from which all others were
        measured, and is believed where nobody else does."""
        found = {mote.nodeid: (round(mote.xpos * 10), round(mote.ypos * 10)) for mote in self.all()}
        told = {node: place for node, place in found.items() if place != (0, 0)}
        root = self.root()
        measured_from = root is not None and told and found.keys() - told.keys() == {root.nodeid}
        return found if measured_from else told

    def levels(self, root: int, now: float) -> list[int]:
        """How many hops each of a root's motes is away, as far as they have told; ``now``: UTC in s."""
        return [
            mote.level
            for mote in self._motes.values()
            if mote.level is not None
            and mote.nodeid != root
            and mote.root in (None, root)
            and self.unheard(mote.nodeid, now) < GONE_S
        ]

    def motes(self) -> list[dict[str, Any]]:
        """All motes by address, as plain values; ``attributes`` are names."""
        return [_described(mote) for mote in self.all()]

    def attributes(self, statics: Statics = NO_STATICS) -> list[dict[str, Any]]:
        """All attributes, users' own ``statics`` last; ``motes``: short addresses of those that can acquire it, or have a value of it.
        Energy J, time s."""
        own = [
            replace(BY_NUMBER[entry.number], name=entry.name, unit=entry.unit) for entry in statics.values()
        ]
        known = [*(entry for entry in BY_NAME.values() if entry not in STATIC_ATTRIBUTES), *own]
        return [
            {
                "name": entry.name,
                "unit": entry.unit,
                "type": "decimal" if entry.digits else "integer",
                "resolution": 10.0**-entry.digits,
                "minimum": entry.minimum,
                "maximum": entry.maximum,
                "energy": entry.energy,
                "sample_time": entry.sample_ms / 1000,
                "constant": entry.constant,
                "description": entry.description,
                "motes": sorted(mote.nodeid for mote in self._motes.values() if mote.acquires(entry)),
            }
            for entry in known
        ]

    def lacking(self, name: str) -> list[int]:
        """Motes known to report NULL for an attribute; [] for an unknown one."""
        entry = BY_NAME.get(name)
        if entry is None:
            return []  # an event's, which needs no sensor
        return sorted(mote.nodeid for mote in self._motes.values() if not mote.acquires(entry))

    def values(self, name: str) -> list[int]:
        """The integers that an attribute has on the motes, as far as their reports tell: addresses and positions (cm)."""
        if name == "nodeid":
            return [mote.nodeid for mote in self.all()]
        if name in ("xpos", "ypos"):
            return [round(getattr(mote, name) * 100) for mote in self.all()]
        entry = BY_NAME.get(name)
        return [mote.statics[entry.number] for mote in self.all() if entry and entry.number in mote.statics]

    def mote_rows(self) -> list[dict[str, Any]]:
        """The motes, to be kept; a row is the same object while its mote's report is the same."""
        for nodeid, mote in self._motes.items():
            if self._rows.get(nodeid, (None,))[0] is not mote:
                self._rows[nodeid] = mote, {"nodeid": nodeid, "report": json.dumps(asdict(mote))}
        return [self._rows[nodeid][1] for nodeid in self._motes]

    @classmethod
    def from_rows(
        cls, motes: Iterable[Mapping[str, Any]], events: Iterable[Mapping[str, Any]], speed: float = 1.0
    ) -> Catalog:
        """What :meth:`mote_rows` and the events' rows said."""
        catalog = cls()
        catalog.speed = speed
        for row in motes:
            report = json.loads(row["report"])
            # A name in JSON is a text.
            report["statics"] = {int(number): value for number, value in report.get("statics", {}).items()}
            mote = catalog._motes[row["nodeid"]] = Mote(**report)
            catalog._through[mote.nodeid] = mote.root
        catalog.events = Events.from_rows(events)
        return catalog


def _mote(status: Mapping[str, Any], received: float, root: int | None) -> Mote:
    same = ("boots", "reset_cause", "attributes", "neighbours", "query_version", "free_ram", "queue_length",
            "uptime", "rows", "dropped", "sent", "repeated", "malformed", "loops", "factory")  # fmt: skip
    return Mote(
        nodeid=status["node"],
        board=BOARDS.get(status["board"], f"board {status['board']}"),
        received=received,
        reported=status["seconds"],
        parent=None if status["parent"] == NO_NODE else status["parent"],
        level=None if status["level"] == NO_LEVEL else status["level"],
        link=status["link"] / 255,
        xpos=status["x"] / 100,
        ypos=status["y"] / 100,
        voltage=status["voltage"] / 1000 or None,
        root=root,
        radio_on=status["radio_on"] / 1000,
        invariant=invariant_name(status["invariant"]),
        statics=told(status["statics"]),
        **{name: status[name] for name in same},
    )


def _described(mote: Mote) -> dict[str, Any]:
    names = [
        entry.name for entry in BY_NAME.values() if mote.acquires(entry) and entry not in STATIC_ATTRIBUTES
    ]
    described = asdict(mote)
    del described["statics"]
    return described | {"attributes": names, "radio_duty_cycle": mote.radio_duty_cycle}
