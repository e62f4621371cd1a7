"""Streams: what the numbers in the log's records mean, and what a root's packets do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skerry.planner.model.plans import MoteQuery


def common_ms(utc_ms: npt.NDArray[np.int64], speed: float) -> npt.NDArray[np.int64]:
    """UTC in ms as a time that several networks have in common and that goes as theirs do: ``speed`` s of it in one of UTC."""
    return utc_ms if speed == 1.0 else np.rint(utc_ms * speed).astype(np.int64)


@dataclass(frozen=True)
class Stream:
    """A mote query in one session of the root: what a record's ``stream`` number means.

    ``since_ms``, ``until_ms``: network times between which its rows count; None: it still runs.
    """

    number: int
    session: int
    query: int
    mote_query: MoteQuery
    since_ms: int = 0
    until_ms: int | None = None
    #: UTC in ms of ``since_ms``; None: it was not noted.
    since_utc_ms: int | None = None

    @property
    def root(self) -> int:
        """Short address of the root that its rows come through; sessions are numbered by :func:`skerry.network.network.session_of`."""
        return int(roots_of(self.session))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "number": self.number,
            "session": self.session,
            "query": self.query,
            "mote_query": self.mote_query.to_dict(),
            "since_ms": self.since_ms,
            "until_ms": self.until_ms,
            "since_utc_ms": self.since_utc_ms,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Stream:
        """The inverse."""
        query = MoteQuery.from_dict(data["mote_query"])
        since = data["since_ms"], data["until_ms"], data["since_utc_ms"]
        return cls(data["number"], data["session"], data["query"], query, *since)

    def to_row(self) -> dict[str, Any]:
        """To be kept in a table, the mote query in JSON."""
        data = self.to_dict()
        return {**data, "mote_query": json.dumps(data["mote_query"])}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Stream:
        """The inverse."""
        return cls.from_dict({**row, "mote_query": json.loads(row["mote_query"])})


def roots_of(sessions: Any) -> Any:
    """Short addresses of the roots that sessions are of."""
    return sessions >> 16 & 0xFFFF


@dataclass(frozen=True, slots=True)
class StreamEpoch:
    """An epoch of a stream, and its begin: UTC in s, None while unknown. A root in its ``session`` brings it; all
    ``sessions`` have a part in it."""

    stream: Stream
    epoch: int
    utc: float | None
    session: int
    sessions: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Derived:
    """A stream that the gateway makes of another one's rows: of epochs that begin at ``since_ms`` or later and, unless that is None,
    before ``until_ms``."""

    stream: Stream
    since_ms: int
    until_ms: int | None

    def has(self, epoch: int) -> bool:
        """Whether an epoch of the derived stream is one of these."""
        begin = epoch * self.stream.mote_query.period_ms
        return self.since_ms <= begin and (self.until_ms is None or begin < self.until_ms)


@dataclass(frozen=True)
class Source:
    """What a root's packets mean. ``stream_of`` finds the stream of a query id in its present session, ``utc`` the UTC in s of
    a network time in ms, None while that is not known; ``place`` says which stream's and which epoch's state a partial state
    goes into, and that epoch's network time in UTC."""

    stream_of: Callable[[int], Stream | None]
    utc: Callable[[int], float | None]
    place: Callable[[Stream, int], StreamEpoch] | None = None
    #: The streams whose rows the gateway makes of a stream's.
    views: Callable[[Stream], list[Derived]] = lambda _: []
    #: Network time in ms; None: as everybody's.
    now_ms: Callable[[], int] | None = None

    def placed(self, stream: Stream, epoch: int) -> StreamEpoch:
        """Where a row goes."""
        if self.place is not None and stream.mote_query.aggregate:
            return self.place(stream, epoch)
        return StreamEpoch(stream, epoch, self.utc(epoch * stream.mote_query.period_ms), stream.session)
