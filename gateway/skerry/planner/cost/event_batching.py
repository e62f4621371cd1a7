"""Ways to serve a query's events, and what each costs: event query batching.

A query that waits for events may run an instance for each, or once for all that overlap: as a join between a window on
the events and the sensors, which the paper asks in each sample period whether the window holds an event, or as a stream
whose epochs are planned when an event comes. Motes run the stream. Rows that say nothing of the event are sent once for
all that are active, others once for each (:mod:`skerry.planner.features.concurrent_events`). Source: TinyDB 2005, 4.3 and
table IV; events are taken to come independently of each other (a Poisson process).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, prod

from skerry.expressions.expression import conjuncts
from skerry.expressions.temporal import counts_epochs, is_pulse, is_temporal, parameters, pulses_window
from skerry.planner.cost.radio import flood_energy
from skerry.planner.features.concurrent_events import is_concurrent
from skerry.planner.model.clause import Clause
from skerry.planner.model.plans import MoteQuery
from skerry.planner.physical.condition_order import selectivity
from skerry.planner.physical.program import chosen
from skerry_protocol.codes import Aggregate, EventFlag

#: Per s, of an event that has not been heard twice: one each ten minutes.
ASSUMED_RATE = 1 / 600
#: J to see whether an event is active: the paper's 80 instructions on an ATmega1281 at 7.37 MHz, 8 mA at 3 V (data
#: sheet 2549, active supply current).
CHECK = 80 / 7.3728e6 * 24e-3

STREAM = "one stream while any event is active, its epochs planned when an event comes"
JOIN = "a join of a window on the events with sensors, which asks each epoch whether it holds one"
INSTANCES = "an instance for each event"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to serve the events; ``energy``: J that an epoch takes from a mote on average, events' floods left out."""

    name: str
    energy: float

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {"way": self.name, "energy_per_epoch": self.energy}


@dataclass(frozen=True, slots=True)
class Batching:
    """``rates``: of the events, per s; ``assumed``: those of them that are. ``active``: how many events are on average
    active at once; ``flood``: J that an event takes from each mote. ``ways``: the chosen one first."""

    rates: dict[str, float]
    assumed: tuple[str, ...]
    lasts: int
    active: float
    flood: float
    ways: tuple[Way, ...]

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "rates": self.rates,
            "assumed": list(self.assumed),
            "lasts": self.lasts,
            "active": self.active,
            "energy_per_event": self.flood,
            "ways": [way.to_dict() for way in self.ways],
        }


def batching(query: MoteQuery, known: Mapping[str, float], sending: float) -> Batching | None:
    """How the events of a mote query may be served; None: it waits for none, for a timer, or for each mote's own.

    ``known``: rates of events by name, per s; ``sending``: J of a record on its way.
    """
    events = events_of(query.clauses)
    if not events or events[0].values[1] & EventFlag.OWN:
        return None
    lasts, flags, _, _ = events[0].values
    rates = {event.name: known.get(event.name, ASSUMED_RATE) for event in events}
    active = _rate(events, rates) * lasts
    sampling, row = chosen(query).energy, rows_of(query) * sending
    if flags & EventFlag.NO_OVERLAP:
        # An event meanwhile changes nothing: after each run the next event is waited for.
        ways = [Way(STREAM, active / (1 + active) * (sampling + row))]
    else:
        share = 1 - exp(-active)
        stream = share * sampling + (active if is_concurrent(query.clauses) else share) * row
        # Sensors are read once for all queries of one instant, so for all instances; each sends its own rows.
        ways = [
            Way(STREAM, stream),
            Way(JOIN, CHECK + stream),
            Way(INSTANCES, share * sampling + active * row),
        ]
    ways.sort(key=lambda way: way.energy)
    assumed = tuple(name for name in rates if name not in known)
    return Batching(rates, assumed, lasts, active, flood_energy(), tuple(ways))


def events_of(clauses: Sequence[Clause]) -> list[Clause]:
    """The events that a query waits for; [] for a timer."""
    waits = [clause for clause in clauses if clause.kind is Aggregate.ON_EVENT]
    return [] if any(clause.values[1] & EventFlag.TIMER for clause in waits) else waits


def _rate(events: Sequence[Clause], rates: Mapping[str, float]) -> float:
    """Of starts, per s: the sum of the alternatives', each of which is as rare as the rarest event that it needs."""
    alternatives: dict[int, float] = {}
    for event in events:
        group = event.values[2]
        alternatives[group] = min(alternatives.get(group, rates[event.name]), rates[event.name])
    return sum(alternatives.values())


def rows_of(query: MoteQuery) -> float:
    """Records that an epoch makes on average."""
    if query.aggregate:
        return 1.0
    passing = prod(map(selectivity, conjuncts(query.where)))
    windows = [c.expr for c in query.columns if c.expr is not None and is_temporal(c.expr)]
    if windows and is_pulse(windows[0]):
        # At most: a pulse ends in every other epoch, and is told then, or with the end of a window.
        return 1 / min(max(2, pulses_window(pulse)) for pulse in windows)
    sliding = [window for window in windows if window.aggregate not in (Aggregate.DELTA, Aggregate.ADPDELTA)]
    if not sliding:
        return passing
    return (1.0 if counts_epochs(sliding[0]) else passing) / parameters(sliding[0]).slide
