"""Joins that share one operator: over the same streams, by the same keys, with one LATENESS; rows are kept for the largest window.

Joins come and go while it runs. A join that comes has answers of the rows from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from skerry.joins.conditions import Column, Compared, Condition, conjuncts, encode, renamed
from skerry.joins.expansion import Member
from skerry.joins.join import Join, JoinError
from skerry.joins.keys import Kind, is_exact, kind_of
from skerry.joins.rows import KEYED, MOST_CONDITIONS, Algorithm

#: A stream, and its fields that are the key: rows are kept once for all aliases that agree in both.
PoolKey = tuple[str, tuple[str, ...]]
#: Of one alias, or of several: what a row of the stream itself has to fulfil, whatever the alias is called.
OwnConditions = tuple[Condition, ...]


@dataclass
class Need:
    """What is kept of one stream. ``bits``: the place in ``passes`` of each set of own conditions that somebody has."""

    kinds: tuple[Kind, ...]
    fields: dict[str, int] = field(default_factory=dict)
    bits: dict[bytes, tuple[int, OwnConditions, int]] = field(default_factory=dict)
    retention_us: int = 0


@dataclass(frozen=True)
class Entry:
    """A join of the group. ``pools``: by alias where its rows are; ``member``: how it is run."""

    join: Join
    pools: tuple[PoolKey, ...]
    member: Member


class Group:
    """``schemas``: the fields of each stream. Raises JoinError."""

    def __init__(self, schemas: Mapping[str, pa.Schema], algorithm: Algorithm, lateness_us: int) -> None:
        self.schemas, self.algorithm, self.lateness_us = dict(schemas), algorithm, lateness_us
        self.needs: dict[PoolKey, Need] = {}
        self.entries: dict[str, Entry] = {}

    @property
    def has_rows(self) -> bool:
        """Whether a window of its joins counts rows."""
        return any(entry.join.graph.has_rows for entry in self.entries.values())

    @property
    def is_outer(self) -> bool:
        """Whether its join is LEFT or ASOF: then it has no other one."""
        return any(entry.join.is_outer for entry in self.entries.values())

    @property
    def is_whole(self) -> bool:
        """Whether panes of time cannot be dealt to buckets."""
        alone = any(len(entry.join.aliases) == 1 for entry in self.entries.values())
        return self.has_rows or self.is_outer or alone

    def add(self, name: str, join: Join, since: int = 0) -> None:
        """One more, of whose rows the first is ``since`` or later. Raises JoinError, then nothing has changed."""
        if name in self.entries:
            raise JoinError(f"there is a join {name!r} already")
        if join.lateness_us != self.lateness_us:
            raise JoinError(
                f"LATENESS {join.lateness_us} µs: joins that share an operator have {self.lateness_us} µs"
            )
        self._check_fields(join)
        self._check_streams(join)
        kinds = key_kinds(join, self.schemas) if self.algorithm == "HW" else ()
        if self.algorithm == "HW" and not kinds:
            raise JoinError(
                "HW needs an equality over all streams, such as a.item = b.item AND b.item = c.item: use MW or NLW"
            )
        keys = join.key if kinds else dict.fromkeys(join.aliases, ())
        pools = tuple((join.streams[alias], keys[alias]) for alias in join.aliases)
        self._check_room(join, pools)
        bits = tuple(
            self._enter(join, alias, pool, kinds) for alias, pool in zip(join.aliases, pools, strict=True)
        )
        left = [one for one in join.conjuncts if not _is_decided(one, join, kinds)]
        member = Member(join.aliases, join.graph.distance, bits, left, since)
        self.entries[name] = Entry(join, pools, member)
        self._retain()

    def remove(self, name: str) -> None:
        """It is over. Fields that nobody else needs are not kept of rows that come from now on."""
        entry = self.entries.pop(name)
        for alias, pool in zip(entry.join.aliases, entry.pools, strict=True):
            need = self.needs[pool]
            text, own = _of_stream(entry.join, alias)
            bit, _, users = need.bits[text]
            need.bits[text] = bit, own, users - 1
            if users == 1:
                del need.bits[text]
            for column in entry.join.columns(alias):
                need.fields[column] -= 1
                if not need.fields[column]:
                    del need.fields[column]
            if not need.bits:
                del self.needs[pool]
        self._retain()

    def _enter(self, join: Join, alias: str, pool: PoolKey, kinds: tuple[Kind, ...]) -> np.uint64:
        need = self.needs.setdefault(pool, Need(kinds))
        for column in join.columns(alias):
            need.fields[column] = need.fields.get(column, 0) + 1
        text, own = _of_stream(join, alias)
        free = next(
            bit for bit in range(MOST_CONDITIONS) if bit not in {one for one, _, _ in need.bits.values()}
        )
        bit, _, users = need.bits.get(text, (free, own, 0))
        need.bits[text] = bit, own, users + 1
        return np.uint64(1 << bit)

    def _check_fields(self, join: Join) -> None:
        for alias, stream in join.streams.items():
            if stream not in self.schemas:
                raise JoinError(f"{alias}: there is no stream {stream!r} in {', '.join(self.schemas)}")
            names = self.schemas[stream].names
            for column in join.columns(alias):
                if column not in names:
                    raise JoinError(f"{alias}.{column}: stream {stream!r} has {', '.join(names)}")

    def _check_streams(self, join: Join) -> None:
        """Progress is that of a join's own streams: with others rows would be late that are not."""
        own = {*join.streams.values()}
        for entry in self.entries.values():
            shared = {*entry.join.streams.values()}
            if own != shared:
                raise JoinError(
                    f"a join over {', '.join(sorted(own))}: joins that share this operator are over {', '.join(sorted(shared))}"
                )

    def _check_room(self, join: Join, pools: tuple[PoolKey, ...]) -> None:
        for alias, pool in zip(join.aliases, pools, strict=True):
            known = self.needs[pool].bits.keys() if pool in self.needs else set()
            wanted = known | {
                _of_stream(join, one)[0]
                for one, other in zip(join.aliases, pools, strict=True)
                if other == pool
            }
            if len(wanted) > MOST_CONDITIONS:
                raise JoinError(
                    f"{alias}: {len(known)} different conditions on rows of {pool[0]!r} share an operator, and more than "
                    f"{MOST_CONDITIONS} do not: start another one"
                )

    def _retain(self) -> None:
        for pool, need in self.needs.items():
            need.retention_us = max(
                entry.join.retention(place)
                for entry in self.entries.values()
                for place, own in enumerate(entry.pools)
                if own == pool
            )


def key_kinds(join: Join, schemas: Mapping[str, pa.Schema]) -> tuple[Kind, ...]:
    """How the columns that WHERE makes equal over all streams are compared; none: there are none, or Arrow has no equality for them."""
    if not join.key:
        return ()
    found = []
    for place in range(len(join.key[join.aliases[0]])):
        kind = kind_of([type_of(join, schemas, alias, join.key[alias][place]) for alias in join.aliases])
        if kind is None:
            return ()
        found.append(kind)
    return tuple(found)


def type_of(join: Join, schemas: Mapping[str, pa.Schema], alias: str, column: str) -> pa.DataType:
    """Of a column of an alias's rows."""
    return pa.int64() if column in ("time", "number") else schemas[join.streams[alias]].field(column).type


def step_of(entry: Entry, group: Group, place: int) -> Member:
    """An alias's step of a LEFT or ASOF join: of its ON what is left when rows of equal keys have met."""
    join, alias = entry.join, entry.join.aliases[place]
    decided = join.own_conditions(alias)
    if group.algorithm == "HW" and is_exact(group.needs[entry.pools[place]].kinds):
        # Between two that may both be missing, equal keys say nothing.
        pair = [Column(one, join.key[one][0]) for one in (join.aliases[0], alias)]
        decided += [Compared("=", *pair), Compared("=", *pair[::-1])]
    left = [one for one in conjuncts(join.steps[place - 1].on) if one not in decided]
    bits = tuple(bit | KEYED for bit in entry.member.bits)
    return Member(join.aliases, join.graph.bounds(place + 1), bits, left, entry.member.since)


def _is_decided(condition: Condition, join: Join, kinds: tuple[Kind, ...]) -> bool:
    """Whether rows that meet fulfil it, as their aliases' rows do, or as their keys are equal."""
    if any(condition in join.own_conditions(alias) for alias in join.aliases):
        return True
    match condition:
        case Compared("=", Column() as left, Column() as right):
            keys = {Column(alias, names[0]) for alias, names in join.key.items()}
            return is_exact(kinds) and {left, right} <= keys
    return False


def _of_stream(join: Join, alias: str) -> tuple[bytes, OwnConditions]:
    """An alias's own conditions, in a form that is the same for each alias that has them."""
    own = [renamed(one, {alias: ""}) for one in join.own_conditions(alias)]
    return b"\n".join(sorted(map(encode, own))), tuple(own)
