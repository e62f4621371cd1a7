"""How often events come, as the root hears them: what the optimiser knows about ON EVENT queries."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

#: The rate is that of the last so many events of a kind.
REMEMBERED = 32
#: Kinds of events that are remembered; of more, those heard last. Event numbers come from motes.
KINDS = 1024


@dataclass(slots=True)
class Heard:
    """Events of one number: how many since the gateway first started, and when the last ones came, UTC in s."""

    number: int
    count: int = 0
    times: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    @property
    def last(self) -> float:
        """When the last one came, UTC in s."""
        return self.times[-1]

    def rate(self, now: float) -> float | None:
        """Events per second, of those after the first that is remembered; None: it came but once."""
        span = now - self.times[0]
        return (len(self.times) - 1) / span if len(self.times) > 1 and span > 0 else None


class Events:
    """Events by number. Those that come while the gateway is away are not heard."""

    def __init__(self) -> None:
        self._heard: OrderedDict[int, Heard] = OrderedDict()

    def hear(self, number: int, now: float) -> None:
        """An event has come; ``now``: UTC in s."""
        heard = self._heard.setdefault(number, Heard(number))
        heard.count += 1
        heard.times.append(now)
        self._heard.move_to_end(number)
        if len(self._heard) > KINDS:
            self._heard.popitem(last=False)

    def of(self, number: int) -> Heard | None:
        """What is known about an event; None: it was never heard."""
        return self._heard.get(number)

    def rate(self, number: int, now: float) -> float | None:
        """Events of a number per second; None: not known."""
        heard = self._heard.get(number)
        return heard.rate(now) if heard is not None else None

    def __iter__(self) -> Iterator[Heard]:
        return iter(list(self._heard.values()))

    def rows(self) -> list[dict[str, Any]]:
        """Everything, to be kept."""
        return [
            {"number": heard.number, "count": heard.count, "times": json.dumps(list(heard.times))}
            for heard in self._heard.values()
        ]

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Events:
        """What :meth:`rows` said."""
        heard = [
            Heard(row["number"], row["count"], deque(json.loads(row["times"]), maxlen=REMEMBERED))
            for row in rows
        ]
        events = cls()
        events._heard.update((each.number, each) for each in sorted(heard, key=lambda each: each.last))
        return events
