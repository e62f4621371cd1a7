"""What a type of streams is: a class with ``init``, ``read`` and ``close``, found by its entry point in the group ``skerry.streams``, whose
name is the scheme of addresses.

A type that waits for what comes (push) has ``async`` methods; one that is asked (pull) may have plain ones, which run in a thread, and says
with ``every_s`` how often. State between calls is the object's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import SplitResult, parse_qsl, urlsplit

#: The group of entry points.
GROUP = "skerry.streams"


class Signal(Enum):
    """What ``read`` may return besides values."""

    #: Nothing has come.
    NO_VALUE = "no value"
    #: Nothing more will.
    END = "end"


class Unfit(bytes):
    """What came that can be no row, of whatever table, and ``why``: it is counted and shown as rows are that do not fit theirs."""

    def __new__(cls, shown: bytes, why: str) -> Self:
        """``shown``: of it, as much as is worth showing."""
        made = super().__new__(cls, shown)
        made.why = why
        return made

    why: str


@dataclass(frozen=True, slots=True)
class Timed:
    """A value and its own time, in place of when it came or of its field that is declared TIME. ``clock``: what it is now where the time
    is of, as in a replay; None: this machine's."""

    value: bytes | Mapping[str, Any]
    time: datetime
    clock: datetime | None = None


#: A line that is decoded as the address says, or a mapping of the fields by their names.
Value = bytes | Mapping[str, Any] | Timed
Read = Signal | Value | Sequence[Value]


@dataclass(frozen=True, slots=True)
class Sensor:
    """The whole tuple: its static values by their columns' names, and the address in parts. ``fields``: names of the stream's fields,
    ``time``: of the one that is a row's time."""

    address: str
    values: Mapping[str, Any]
    fields: tuple[str, ...]
    time: str | None = None
    #: How that one is written.
    time_format: str = "iso"
    #: The folder that files are read from where an address names none.
    folder: Path = field(default_factory=Path)
    #: What the type has said last of where to go on, if it has and its rows are in the log.
    position: str | None = None
    #: A name that no other source has, the same whenever this one is opened.
    identity: str = "skerry"
    #: Somebody only looks: rows need not wait for their time, and nothing is to be left behind elsewhere.
    trial: bool = False

    @property
    def url(self) -> SplitResult:
        """The address in parts; # is a character as others are."""
        return urlsplit(self.address, allow_fragments=False)

    @property
    def options(self) -> dict[str, str]:
        """What stands behind its question mark."""
        return dict(parse_qsl(self.url.query, keep_blank_values=True))


class AddressError(ValueError):
    """An address that cannot be right, however often it is tried; one line."""


class StreamType(ABC):
    """The base of all types. An OSError of any method means that the source is away: it is closed, and opened again later. AddressError:
    it is not tried again before its tuple has changed."""

    #: Of a type that is asked: so many s apart. None: ``read`` waits by itself.
    every_s: float | None = None
    #: Names of options of its addresses; None: any.
    options: ClassVar[frozenset[str] | None] = frozenset()
    #: Values of ``format=`` besides json and csv, which it reads itself.
    own_formats: ClassVar[frozenset[str]] = frozenset()
    #: Of a type that can send again: where to go on behind what ``read`` has given so far. It is kept in the log with the rows, and given
    #: to ``init`` (``sensor.position``) when the source is opened again: each row is in the log once. Where it has not changed, reading
    #: goes on as many values behind it as have come since: what comes from there must be the same each time.
    position: str | None = None
    #: Whether it goes on there also after nobody has wanted the source for a while; else it begins anew then.
    lasting: bool = False
    #: Whether it is read only when all that it has brought has been taken: where it keeps together with others, whatever waits for whom.
    in_step: bool = False
    #: Whether it looks at more of the tuple than the address: then it is opened again where that has changed.
    reads_tuple: ClassVar[bool] = True
    #: What is to be told of it while it is open.
    note: str = ""

    @abstractmethod
    def init(self, sensor: Sensor) -> Awaitable[None] | None:
        """Open the source."""

    @abstractmethod
    def read(self) -> Awaitable[Read] | Read:
        """What has come: a value, several, or a signal."""

    def kept(self, values: int) -> None:  # noqa: B027 - most types have nobody to tell
        """So many of the values that it has given so far are durable in the log, or no rows of its table: who sent them may forget them.
        Called in the loop: it must not wait."""

    @abstractmethod
    def close(self) -> Awaitable[None] | None:
        """Nothing more is needed."""


def schemes() -> set[str]:
    """Of the types that are installed, none of which is loaded."""
    return {point.name for point in entry_points(group=GROUP)}


def types() -> Mapping[str, type[StreamType]]:
    """All that are installed, by the schemes of their addresses. One is loaded when it is taken, which raises AddressError where that
    cannot be: it is nobody else's trouble."""
    return _Installed({point.name: point for point in entry_points(group=GROUP)})


class _Installed(Mapping[str, type[StreamType]]):
    def __init__(self, points: Mapping[str, EntryPoint]) -> None:
        self._points = points

    def __getitem__(self, scheme: str) -> type[StreamType]:
        point = self._points[scheme]
        try:
            found = point.load()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise AddressError(
                f"type of streams '{scheme}' cannot be loaded from {point.value}: {why}"
            ) from None
        if not (isinstance(found, type) and issubclass(found, StreamType)):
            raise AddressError(
                f"type of streams '{scheme}': {point.value} is no class whose base is skerry.sources.stream_type.StreamType"
            )
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._points)

    def __len__(self) -> int:
        return len(self._points)
