"""What the gateway knows as tables: motes, attributes, events, commands, streams, queries, storage points,
semantic routing trees, tags."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields
from typing import Any

from skerry.catalog.actions import find, known
from skerry.catalog.catalog import Catalog, Mote
from skerry.catalog.event_rates import Events, Heard
from skerry.catalog.static_attributes import NO_STATICS, Statics
from skerry.catalog.substitutes import silent, substitutes
from skerry.catalog.table_select import Table
from skerry.planner.cost.radio import flood_energy
from skerry.service.queries import UserQuery
from skerry.streams.stream import Stream
from skerry_protocol.codes import Aggregate
from skerry_protocol.commands import MOTE_EVENTS, event_number

#: Columns of motes: what they report, without the bits of ``attributes``, and when they were heard.
_OWN = tuple(entry.name for entry in fields(Mote) if entry.name not in ("attributes", "statics"))
_MOTE = (*_OWN, "radio_duty_cycle", "heard", "silent")
_EVENT = ("event", "number", "role", "query", "raised", "last", "per_hour", "energy")
_ROLES = {Aggregate.ON_EVENT: "starts it", Aggregate.STOP_ON: "stops it", Aggregate.SIGNAL: "is raised by it"}


def tables(
    catalog: Catalog,
    tags: Iterable[tuple[Any, ...]],
    streams: Iterable[Stream],
    current: Collection[int],
    queries: list[UserQuery],
    points: list[dict[str, Any]],
    srts: list[dict[str, Any]],
    now: float,
    statics: Statics = NO_STATICS,
) -> dict[str, Table]:
    """All of them, with the attributes that users have made (``statics``); ``queries``, ``points`` and ``srts`` as the asker may see
    them. ``current``: numbers of the streams of the present sessions; ``now``: UTC in s."""
    attributes = catalog.attributes(statics)
    return {
        "motes": Table(_MOTE, [_mote(catalog, mote, now) for mote in catalog.all()]),
        "attributes": Table(
            tuple(attributes[0]),
            [(*list(entry.values())[:-1], len(entry["motes"])) for entry in attributes],
        ),
        "mote_attributes": Table(
            ("nodeid", "attribute"),
            [(nodeid, entry["name"]) for entry in attributes for nodeid in entry["motes"]],
        ),
        "tags": Table(("nodeid", "key", "value", "user", "set_at"), sorted(tags, key=lambda row: (row[0], row[1]))),
        "substitutes": Table(("nodeid", "substitute", "distance", "lacks", "place"), _substitutes(catalog, now)),
        "events": Table(_EVENT, list(_events(queries, catalog.events, now))),
        "commands": Table(
            ("command", "number", "low", "high", "description"),
            [(one.name, one.number, one.low, one.high, one.description) for one in map(find, known())],
        ),
        "streams": Table(
            ("stream", "root", "session", "query", "runs", "period_ms", "aggregate", "columns"),
            [
                (s.number, s.root, s.session, s.query, int(s.number in current), s.mote_query.period_ms,
                 int(s.mote_query.aggregate), ", ".join(column.name for column in s.mote_query.columns))
                for s in streams
            ],
        ),
        "queries": Table(
            ("query", "user", "sql", "created", "period_ms", "finished", "readers", "linger_s"),
            [
                (q.id, q.user, q.sql, q.created, q.plan.period_ms, int(q.finished), q.readers, q.linger_s)
                for q in queries
            ],
        ),
        "query_streams": Table(
            ("query", "stream"), [(q.id, number) for q in queries for number in sorted(q.feeds)]
        ),
        "points": Table(
            ("name", "query", "user", "rows", "bytes", "memory", "fields"),
            [
                (p["name"], p["query"], p["user"], p["rows"], p["bytes"], p["memory"], ", ".join(f["name"] for f in p["fields"]))
                for p in points
            ],
        ),
        "srts": Table(
            ("name", "query", "user", "policy", "attributes"),
            [
                (t["name"], t["query"], t["user"], t["policy"], ", ".join(a["name"] for a in t["attributes"]))
                for t in srts
            ],
        ),
    }  # fmt: skip


def _mote(catalog: Catalog, mote: Mote, now: float) -> tuple[Any, ...]:
    heard = catalog.heard(mote.nodeid)
    own = (getattr(mote, name) for name in _OWN)
    return (*own, mote.radio_duty_cycle, heard, int(silent(mote, catalog, now)))


def _substitutes(catalog: Catalog, now: float) -> Iterator[tuple[int, int, float, str, int]]:
    """For each silent mote, by place."""
    for mote in catalog.all():
        if silent(mote, catalog, now):
            for place, one in enumerate(substitutes(catalog, mote.nodeid, now), start=1):
                yield mote.nodeid, one.nodeid, one.distance, ", ".join(one.lacks), place


def _events(queries: list[UserQuery], heard: Events, now: float) -> Iterator[tuple[Any, ...]]:
    """Those that motes raise by themselves, those that queries wait for or raise, and others that were heard."""
    own = [(name, text, None) for name, text in MOTE_EVENTS.items()]
    of_queries = [
        (clause.name, _ROLES[clause.kind], query.id)
        for query in queries
        for clause in query.plan.clauses
        if clause.kind in _ROLES
    ]
    for name, role, query_id in own + of_queries:
        number = event_number(name)
        yield name, number, role, query_id, *_come(heard.of(number), now)
    named = {event_number(name) for name, _, _ in own + of_queries}
    for one in heard:
        if one.number not in named:
            yield None, one.number, None, None, *_come(one, now)


def _come(heard: Heard | None, now: float) -> tuple[Any, ...]:
    """How often, when last, how many an hour, and J that one takes from each mote."""
    if heard is None:
        return 0, None, None, flood_energy()
    rate = heard.rate(now)
    return heard.count, heard.last, None if rate is None else rate * 3600, flood_energy()
