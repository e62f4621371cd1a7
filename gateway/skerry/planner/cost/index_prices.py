"""What questions and inserts of an index take of the motes' batteries: their bytes on the air, by the frames of records on ways."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from skerry.catalog.catalog import Mote
from skerry.index.prices import WAY_KEPT_S, Format, opened_anew
from skerry.planner.cost import radio
from skerry.planner.cost.event_batching import ASSUMED_RATE
from skerry.planner.cost.join_prices import WAY_FRAME_BYTES
from skerry.planner.features.indexing import Index
from skerry.sql.units import duration_text
from skerry_protocol.records import AggregateState
from skerry_protocol.ways import WayOpen, WayPlace, WayState

#: Of a WAY_OPEN, before what its flags say.
_OPEN = sum(field.sizeof() for field in WayOpen.subcons[:-1])
#: So many times each frame goes that opens a way, as measured (hil_tests/test_index_costs.py): motes have theirs opened in the same control
#: windows, in which frames meet, and some have gone to sleep.
_TIMES = 1.5
#: What opens a way to a place over one hop: a WAY_OPEN there, a WAY_STATE back, and their acknowledgements.
_OPENING = 2 * (radio.PACKET_BYTES + radio.ACK_BYTES) + _OPEN + WayPlace.sizeof() + WayState.sizeof()
#: A name is mote, session and number; a question has what it is of, whose it is, and a range of 4 bytes for each of four attributes.
FORMAT = Format(
    header=WAY_FRAME_BYTES + radio.ACK_BYTES,
    payload=127 + 6 - WAY_FRAME_BYTES,
    query=20,
    name=8,
    value=2,
    state=AggregateState.sizeof(),
    opening=_TIMES * _OPENING,
)


def energy(sent: float) -> float:
    """J that both ends of each hop take for so many bytes, acknowledgements among them; what motes listen for in vain is not in it."""
    return radio.both_ends(radio.seconds_of(sent))


#: Bytes of tuples that a mote has room for, as a CC2538 says in FLASH.
CAPACITY = 281_728
#: Of a tuple in flash: words of a record's head and of a name with its time, and bytes of a word (firmware/storage/tuples.c).
_HEAD_WORDS, _WORD = 5, 4
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What an index takes, by estimate: ``sampling``, ``radio`` and ``opening``: J a day of all motes together, the radio for tuples on
    their ways, and for opening these, without what is listened to in vain; ``kept_ms``: for how long there is room for its tuples. Tuples
    fall evenly on those that store. ``assumed``: how often their event comes is not known."""

    tuples_a_day: float
    sampling: float
    radio: float
    opening: float
    kept_ms: int
    assumed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def energy_line(self) -> str:
        """What it takes, for people."""
        which = ", as many as are assumed of an event that has not been heard twice," if self.assumed else ""
        return (
            f"{self.tuples_a_day:.0f} tuples a day{which} take {self.sampling:.3g} J of sampling and {self.radio:.3g} J of radio,"
            f" and {self.opening:.3g} J to open ways, which lapse after {WAY_KEPT_S} s, of all motes together;"
            " what is listened to in vain comes on top"
        )

    def room(self, keep_ms: int) -> str:
        """For how long tuples are kept."""
        days = f"{self.kept_ms / _DAY_MS:.3g} days of tuples, where these fall evenly on the motes that store them"
        if keep_ms <= self.kept_ms:
            return f"there is room for {days}: KEEP {duration_text(keep_ms)} fits"
        return f"there is room for {days}: KEEP {duration_text(keep_ms)} does not fit, the oldest go before"


def upkeep(
    index: Index,
    motes: Sequence[Mote],
    capacities: Mapping[int, int],
    sampling: float,
    raised: float | None = None,
) -> Upkeep:
    """Of an index among motes; ``capacities``: bytes by mote, as far as they have told; ``sampling``: J of a tuple; ``raised``: events of
    all motes together, per s, where it is of an event and that is known."""
    period_ms: float = index.period_ms
    if index.event is not None:
        period_ms = 1000 * len(motes) / (raised or ASSUMED_RATE)
    tuples = len(motes) * _DAY_MS / period_ms
    sent, opened, kept = 0.0, 0.0, math.inf
    for part in index.parts:
        sizes = [index.axes[column].entry.format.size for column in part.columns]
        words = _HEAD_WORDS + (-(-len(sizes) // 2) if max(sizes) <= 2 else len(sizes))
        room = sum(capacities.get(node, CAPACITY) for node in part.storing)
        hops = _hops(part.storing, motes)
        sent += energy(FORMAT.header + FORMAT.name + sum(sizes)) * hops
        anew = opened_anew(period_ms / 1000, len(index.parts), len(part.storing))
        opened += energy(FORMAT.opening) * hops * anew
        kept = min(kept, room / (words * _WORD) / tuples * _DAY_MS)
    return Upkeep(
        tuples,
        tuples * sampling,
        tuples * sent,
        tuples * opened,
        int(kept),
        index.event is not None and raised is None,
    )


def _hops(storing: Iterable[int], motes: Sequence[Mote]) -> float:
    """From a mote to one that stores, on average: a hop is as long as those in the tree are in the median."""
    places = {mote.nodeid: (mote.xpos, mote.ypos) for mote in motes}
    links = [
        math.dist(places[mote.nodeid], places[mote.parent])
        for mote in motes
        if mote.parent is not None and mote.parent in places
    ]
    hop = max(median(links) if links else 0.0, 0.01)
    owners = [places[node] for node in storing if node in places]
    return fmean(math.ceil(math.dist(place, owner) / hop) for place in places.values() for owner in owners)
