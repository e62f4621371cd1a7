"""The joins that there are, as groups that share an operator each, and what is mined: a function of the changes so far, the same in every
process.

A change is ``[version, "join", name, since, spec]``: a join of rows from number ``since`` of the log on, as the planner says it
(:mod:`skerry.sensors.join_planning`) and with the ``buckets`` of a group that begins with it, or what is mined in them
(:mod:`skerry.sensors.mining_planning`);
``[version, "motes", name, sql, rows]``: which rows of the log are from then on what motes are asked for it by this query
(:mod:`skerry.execution.join_motes`); ``[version, "ended", name]``: no more rows come; ``[version, "failed", name, text]``: its group has
lost rows, and why; or ``[version, "gone", name]``.
The first one, ``[version, "since", "", groups]``, says where versions go on, and which groups have gone before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from skerry.execution.join_motes import MoteRows
from skerry.execution.mined_rows import PLACES, MinedGroup
from skerry.joins.buckets import BUCKETS
from skerry.joins.conditions import Column, decode
from skerry.joins.group import Group
from skerry.joins.join import Join, JoinError, Step
from skerry.joins.windows import UNBOUNDED, Window
from skerry.planner.model.source_plans import Term
from skerry.sensors.join_conditions import type_of

SINCE = "since"
Change = list[Any]


@dataclass(frozen=True)
class Selected:
    """A column of answers: of which alias's column it is made, and its type."""

    alias: str
    name: str
    type: str


@dataclass(frozen=True)
class Member:
    """A join of a group. ``written``: by column of its answers' batches the term over ``select`` that it is, of those that it has
    ``asked``; None: all of ``select``, as it is."""

    join: Join
    select: Mapping[str, Selected]
    written: Mapping[str, Term] | None = None
    asked: Term | None = None


@dataclass
class JoinGroup:
    """``name``: its own, never given twice; ``streams``: the log's stream and the condition on static columns of each that it reads;
    ``since``: the first row that it has. ``ended``: no more rows come, of those that wait for others."""

    name: str
    group: Group
    streams: dict[str, tuple[int, Term | None]]
    since: int
    #: By stream of motes, what they are asked.
    motes: dict[str, str]
    #: Into how many its rows are dealt, as was chosen when it began.
    buckets: int = BUCKETS
    members: dict[str, Member] = field(default_factory=dict)
    ended: bool = False

    @property
    def algorithm(self) -> str:
        """Which one joins."""
        return self.group.algorithm

    def remove(self, name: str) -> None:
        """A join is over."""
        self.group.remove(name)
        del self.members[name]

    def limit_of_bucket(self, each: int) -> int:
        """Bytes that a bucket may keep, so that all together keep no more than :data:`BUCKETS` with ``each``: of fewer buckets of rows that
        meet by key each has more; others have most of their rows in one, however many there are."""
        return (
            each * (BUCKETS // self.buckets) if self.algorithm == "HW" and not self.group.has_rows else each
        )

    @property
    def waits(self) -> bool:
        """Whether answers wait for progress, and some may come when all sources have ended."""
        return self.group.has_rows or self.group.is_outer


class JoinSets:
    """What the changes up to ``version`` come to."""

    def __init__(self) -> None:
        self.version = 0
        self.groups: dict[str, JoinGroup | MinedGroup] = {}
        self._by_key: dict[str, list[str]] = {}
        #: By join: its group.
        self.group_of: dict[str, str] = {}
        #: Groups that have gone, or ended, with the version that says so.
        self.gone: list[tuple[int, str]] = []
        #: By join and what motes are asked for it.
        self.of_motes: dict[str, dict[str, MoteRows]] = {}
        self.ended: list[tuple[int, str]] = []
        #: Groups that have stopped, and why: what they keep lacks rows, so that nobody else may share it.
        self.failed: dict[str, str] = {}

    def apply(self, change: Change) -> None:
        """The next one."""
        version, kind, name, *rest = change
        self.version = version
        if kind == SINCE:
            self.gone += [(version, group) for group in rest[0]]
        elif kind == "join":
            self._add(name, *rest)
        elif kind == "motes":
            self.of_motes.setdefault(name, {})[rest[0]] = MoteRows.of(rest[1])
        elif kind == "ended":
            self._end(name)
        elif kind == "failed":
            if name in self.group_of:
                self.failed.setdefault(self.group_of[name], rest[0])
        elif kind == "gone":
            self._remove(name)

    def streams(self) -> set[int]:
        """Streams of the log that anybody reads."""
        found = {number for group in self.groups.values() for number, _ in group.streams.values()}
        for group in self.groups.values():
            found |= {number for rows in self.mote_rows(group).values() for number in rows.feeds}
        return found

    def mote_rows(self, group: JoinGroup | MinedGroup) -> dict[str, MoteRows]:
        """By a group's streams of motes, which rows of the log they are: as for the oldest of its joins, as all ask for the same."""
        if not group.motes:
            return {}
        known = self.of_motes.get(next(iter(group.members)), {})
        return {name: known[sql] for name, sql in group.motes.items() if sql in known}

    def _add(self, name: str, since: int, spec: Mapping[str, Any]) -> None:
        if "mines" in spec:
            mined = MinedGroup(str(self.version), spec, since, {name: None})
            self.groups[mined.name], self.group_of[name] = mined, mined.name
            return
        member, key = member_of(spec), _key(name, spec)
        for known in self._by_key.get(key, []):
            before = self.groups[known]
            if isinstance(before, JoinGroup) and self._joins(before, name, member, since, spec):
                return
        streams = {
            stream: (one["number"], Term.from_list(one["chosen"]) if one["chosen"] is not None else None)
            for stream, one in spec["streams"].items()
            if one.get("motes") is None
        }
        motes = {stream: one["motes"] for stream, one in spec["streams"].items() if one.get("motes")}
        schemas = {stream: _schema(one["fields"]) for stream, one in spec["streams"].items()}
        group = JoinGroup(
            str(self.version), Group(schemas, spec["algorithm"], spec["lateness_us"]), streams, since, motes,
            spec.get("buckets", BUCKETS),
        )  # fmt: skip
        group.group.add(name, member.join, since << PLACES)
        group.members[name] = member
        self.groups[group.name] = group
        self._by_key.setdefault(key, []).append(group.name)
        self.group_of[name] = group.name

    def _joins(
        self, group: JoinGroup, name: str, member: Member, since: int, spec: Mapping[str, Any]
    ) -> bool:
        """Whether a group has taken one more."""
        if group.ended or group.name in self.failed:
            return False
        schemas = group.group.schemas
        try:
            merged = {
                stream: pa.unify_schemas([schemas[stream], _schema(one["fields"])])
                for stream, one in spec["streams"].items()
            }
        except pa.ArrowException:
            # A column has another type by now.
            return False
        before = dict(schemas)
        schemas.update(merged)
        try:
            group.group.add(name, member.join, since << PLACES)
        except JoinError:
            schemas.update(before)
            return False
        group.members[name], self.group_of[name] = member, group.name
        return True

    def _end(self, name: str) -> None:
        found = self.group_of.get(name)
        if found is not None:
            group = self.groups[found]
            if group.waits:
                group.ended = True
            self.ended.append((self.version, found))

    def _remove(self, name: str) -> None:
        found = self.group_of.pop(name, None)
        if found is None:
            return
        group = self.groups[found]
        self.of_motes.pop(name, None)
        group.remove(name)
        if not group.members:
            del self.groups[found]
            self.failed.pop(found, None)
            for known in self._by_key.values():
                if found in known:
                    known.remove(found)
            self.gone.append((self.version, found))


def member_of(spec: Mapping[str, Any]) -> Member:
    """A join as the planner says it."""
    windows = {frozenset((one, other)): Window(us, rows) for one, other, us, rows in spec["windows"]}
    select = {name: Selected(*made) for name, made in spec["select"].items()}
    wanted = tuple(dict.fromkeys(Column(made.alias, made.name) for made in select.values()))
    where = decode(spec["where"].encode())
    steps = tuple(Step(kind, decode(on.encode())) for kind, on in spec["steps"])
    join = Join(spec["aliases"], windows, where, wanted, spec["lateness_us"], steps)
    made = spec.get("made")
    if made is None:
        return Member(join, select)
    written = {name: Term.from_list(term) for name, term in made["written"]}
    return Member(join, select, written, Term.from_list(made["asked"]) if made["asked"] is not None else None)


def _schema(fields: Mapping[str, str]) -> pa.Schema:
    return pa.schema([(name, type_of(kind)) for name, kind in fields.items()])


def _key(name: str, spec: Mapping[str, Any]) -> str:
    """What joins have in common that share an operator."""
    join = member_of(spec).join
    if join.graph.has_rows or join.is_outer or len(join.aliases) == 1 or spec.get("alone"):
        return f"alone {name}"
    # Panes of time are dealt to buckets by their length.
    reach = max(join.retention(place) for place in range(len(join.aliases)))
    assert reach < UNBOUNDED, "a window without rows is of time"
    pane = reach if spec["algorithm"] != "HW" else None
    return json.dumps([spec["algorithm"], spec["lateness_us"], sorted(spec["streams"]), pane])
