"""The joins that there are, as groups that share an operator each: a function of the changes so far, the same in every process.

A change is ``[version, "join", name, since, spec]``: a join of rows from number ``since`` of the log on, as the planner says it
(:mod:`skerry.sensors.join_planning`); ``[version, "ended", name]``: no more rows come; or ``[version, "gone", name]``.
The first one, ``[version, "since", "", groups]``, says where versions go on, and which groups have gone before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from skerry.joins.conditions import Column, decode
from skerry.joins.group import Group
from skerry.joins.join import Join, JoinError
from skerry.joins.windows import UNBOUNDED, Window
from skerry.planner.model.source_plans import Term
from skerry.sensors.join_conditions import type_of

#: Rows of a record of the log have numbers of their own: its number, and behind so many bits the place in it.
PLACES = 20
#: Into how many parts a group's state is dealt: more than there are cores.
BUCKETS = 8
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
    """A join of a group."""

    join: Join
    select: Mapping[str, Selected]


@dataclass
class JoinGroup:
    """``name``: its own, never given twice; ``streams``: the log's stream and the condition on static columns of each that it reads;
    ``since``: the first row that it has. ``ended``: no more rows come, of those that wait for others."""

    name: str
    group: Group
    streams: dict[str, tuple[int, Term | None]]
    since: int
    members: dict[str, Member] = field(default_factory=dict)
    ended: bool = False

    @property
    def counts_rows(self) -> bool:
        """Whether any of its windows is one of rows."""
        return any(member.join.graph.has_rows for member in self.members.values())


class JoinSets:
    """What the changes up to ``version`` come to."""

    def __init__(self) -> None:
        self.version = 0
        self.groups: dict[str, JoinGroup] = {}
        self._by_key: dict[str, list[str]] = {}
        #: By join: its group.
        self.group_of: dict[str, str] = {}
        #: Groups that have gone, or ended, with the version that says so.
        self.gone: list[tuple[int, str]] = []
        self.ended: list[tuple[int, str]] = []

    def apply(self, change: Change) -> None:
        """The next one."""
        version, kind, name, *rest = change
        self.version = version
        if kind == SINCE:
            self.gone += [(version, group) for group in rest[0]]
        elif kind == "join":
            self._add(name, *rest)
        elif kind == "ended":
            self._end(name)
        elif kind == "gone":
            self._remove(name)

    def streams(self) -> set[int]:
        """Streams of the log that anybody reads."""
        return {number for group in self.groups.values() for number, _ in group.streams.values()}

    def _add(self, name: str, since: int, spec: Mapping[str, Any]) -> None:
        member, key = member_of(spec), _key(name, spec)
        for known in self._by_key.get(key, []):
            if self._joins(self.groups[known], name, member, since, spec):
                return
        streams = {
            stream: (one["number"], Term.from_list(one["chosen"]) if one["chosen"] is not None else None)
            for stream, one in spec["streams"].items()
        }
        schemas = {stream: _schema(one["fields"]) for stream, one in spec["streams"].items()}
        group = JoinGroup(
            str(self.version), Group(schemas, spec["algorithm"], spec["lateness_us"]), streams, since
        )
        group.group.add(name, member.join, since << PLACES)
        group.members[name] = member
        self.groups[group.name] = group
        self._by_key.setdefault(key, []).append(group.name)
        self.group_of[name] = group.name

    def _joins(
        self, group: JoinGroup, name: str, member: Member, since: int, spec: Mapping[str, Any]
    ) -> bool:
        """Whether a group has taken one more."""
        if group.ended:
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
            if group.counts_rows:
                group.ended = True
            self.ended.append((self.version, found))

    def _remove(self, name: str) -> None:
        found = self.group_of.pop(name, None)
        if found is None:
            return
        group = self.groups[found]
        group.group.remove(name)
        del group.members[name]
        if not group.members:
            del self.groups[found]
            for known in self._by_key.values():
                if found in known:
                    known.remove(found)
            self.gone.append((self.version, found))


def member_of(spec: Mapping[str, Any]) -> Member:
    """A join as the planner says it."""
    windows = {frozenset((one, other)): Window(us, rows) for one, other, us, rows in spec["windows"]}
    select = {name: Selected(*made) for name, made in spec["select"].items()}
    wanted = tuple(dict.fromkeys(Column(made.alias, made.name) for made in select.values()))
    join = Join(spec["aliases"], windows, decode(spec["where"].encode()), wanted, spec["lateness_us"])
    return Member(join, select)


def _schema(fields: Mapping[str, str]) -> pa.Schema:
    return pa.schema([(name, type_of(kind)) for name, kind in fields.items()])


def _key(name: str, spec: Mapping[str, Any]) -> str:
    """What joins have in common that share an operator."""
    join = member_of(spec).join
    if join.graph.has_rows:
        return f"alone {name}"
    # Panes of time are dealt to buckets by their length.
    reach = max(join.graph.retention(place) for place in range(len(join.aliases)))
    assert reach < UNBOUNDED, "a window without rows is of time"
    pane = reach if spec["algorithm"] != "HW" else None
    return json.dumps([spec["algorithm"], spec["lateness_us"], sorted(spec["streams"]), pane])
