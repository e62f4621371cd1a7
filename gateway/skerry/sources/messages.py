"""What the gateway and its intake process say to each other, over a socket that only these two have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skerry.sensors.definitions import SensorTable
from skerry.storage.log.source_batches import SourceBatch
from skerry.storage.log.source_positions import Position

#: A source: the number of its table, and of its tuple.
Key = tuple[int, int]


@dataclass(frozen=True)
class Wanted:
    """The tuples whose sources are to be open from now on, and no others. ``tables``: by number; ``rows``: the tuples' values;
    ``positions``: up to where rows of them are in the log; ``openings``: one that is wanted again, after nobody did, has another number."""

    tables: dict[int, SensorTable]
    rows: dict[Key, tuple[Any, ...]]
    positions: Mapping[Key, Position] = field(default_factory=dict, compare=False)
    openings: Mapping[Key, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Job:
    """The gateway's first word. ``folder``: where files are; ``allowed``: what addresses may open; ``secrets``: where those are."""

    folder: str
    allowed: tuple[str, ...]
    secrets: str


@dataclass(frozen=True)
class Taken:
    """The rows are durable; or, not ``done``, they come again."""

    done: bool


@dataclass(frozen=True)
class Brought:
    """A batch of a table. ``sources``: by tuple its rows, their least time and their greatest, in us; ``columns``: by name the bytes of all
    values, and the least and the greatest, None where there are none or no order."""

    table: int
    sources: Mapping[int, tuple[int, int, int]]
    columns: Mapping[str, tuple[int, Any, Any]]


@dataclass(frozen=True)
class Rows:
    """Batches for the log, in this order, and what is counted of each. The process waits for :class:`Taken`."""

    batches: tuple[SourceBatch, ...]
    brought: tuple[Brought, ...]


@dataclass
class SourceState:
    """How a source is. ``state``: opening, open, away (with ``why``, tried again), refused or ended. ``misfits``: rows that do not fit
    their table, of which ``sample`` has some with the reason; ``ahead``: rows whose time is more than a minute ahead of the clock;
    ``waiting``: rows that are not yet on their way to the log."""

    table: str
    tuple: int
    address: str
    state: str = "opening"
    why: str = ""
    rows: int = 0
    misfits: int = 0
    ahead: int = 0
    waiting: int = 0
    last: float | None = None
    sample: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class States:
    """How the sources are that have changed lately."""

    states: dict[Key, SourceState]
