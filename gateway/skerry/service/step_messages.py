"""What a gateway that is stepped and whoever steps it say to each other: one JSON object in a line, each answered by one."""

from __future__ import annotations

from typing import Any

import msgspec

#: UTC in s at 0 s of virtual time: 2026-01-01 00:00:00.
UTC_OF_START = 1_767_225_600


class Begin(msgspec.Struct, tag=True):
    """The first line: data and tables directories, what ``WINRAND`` draws from, the statements that will be asked, and static attributes
    that motes were given values of, in the order of their places. Answered by :class:`Told` with what is wrong with a statement, if that
    can be known before."""

    data: str
    tables: str | None
    seed: int
    statements: list[str]
    attributes: list[str] = []


class Step(msgspec.Struct, tag=True, omit_defaults=True):
    """It is ``now`` s of virtual time, ``data`` has come from the root; ``ask``: (SQL, user), asked as soon as the root has answered, in
    this order; ``stop``: numbers, from 0 in the order they were asked in, of those to stop."""

    now: float
    data: bytes = b""
    ask: list[tuple[str, str]] = []
    stop: list[int] = []


class End(msgspec.Struct, tag=True):
    """The last line; answered by :class:`Ended`."""


class Told(msgspec.Struct, omit_defaults=True):
    """``data`` for the root; ``rows``: id of a query and values by column, moments as text; ``notes``: lines for whoever watches;
    ``joined``: where rows that motes join are joined, of queries of which that has changed. ``error``: what a statement was refused for;
    nothing comes after it."""

    data: bytes = b""
    rows: list[tuple[str, dict[str, Any]]] = []
    notes: list[str] = []
    joined: list[dict[str, Any]] = []
    error: str | None = None


class QueryReport(msgspec.Struct):
    """A query that was asked, or that another's rows start. ``mote_queries``: numbers on the motes that have served it, so far as those
    are told of; ``asked_s``: virtual time; ``refused``: which motes do not run it, and why; ``joined``: of rows that motes join, where
    (:meth:`skerry.service.pair_service.PairService.status`)."""

    id: str
    user: str
    sql: str
    asked_s: float
    started_by: str | None = None
    columns: list[str] = []
    notes: list[str] = []
    mote_queries: list[int] = []
    refused: list[str] = []
    paused: str | None = None
    finished: bool = False
    stopped: bool = False
    joined: dict[str, Any] | None = None


class Ended(msgspec.Struct):
    """All queries in the order they were asked in, and alarms that hold."""

    queries: list[QueryReport]
    alarms: list[str]
