"""Semantic routing trees: which attributes they index, and how values become codes of a byte. Source: TinyDB 2005, section 5."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from skerry.catalog.static_attributes import NO_STATICS, Statics
from skerry.expressions import build
from skerry.expressions.assembler import obstacle
from skerry.planner.model.clause import Clause
from skerry.planner.model.plans import Column, QueryPlan
from skerry.planner.semantics.positions import LOC
from skerry.planner.semantics.scope import SYNONYMS
from skerry.sql import ast
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.units import duration_text
from skerry_protocol import programs
from skerry_protocol.attributes import BY_NAME, BY_NUMBER, STATIC_ATTRIBUTES, Attribute
from skerry_protocol.bytecode import Op
from skerry_protocol.codes import Aggregate, Policy
from skerry_protocol.limits import PERIOD_MAXIMUM_MS, PERIOD_MINIMUM_MS

#: Codes are 0..255.
CODES = 256
#: How often motes look at what changes, in ms, unless the statement says it.
CHANGING_PERIOD_MS = 60_000
#: Attributes of which values close to each other are told apart and those far from here are not: first value.
_NUMBERED = {"room": 0, "group": 0, "floor": -28, "level": 0}

#: Attributes that have the values of others.
_LIKE = {"parent": "nodeid"}


@dataclass(frozen=True, slots=True)
class Axis:
    """An indexed attribute: integers up to ``low`` have code 0, and each ``step`` further integers the next one, up to 255."""

    attribute: int
    low: int
    step: int
    #: What users call it, where that is not what motes do.
    called: str = ""

    @property
    def name(self) -> str:
        """The attribute's."""
        return self.called or BY_NUMBER[self.attribute].name

    def code(self, value: int) -> int:
        """Code of an integer, as motes compute it: never falling, so that codes of a range are between those of its ends."""
        return min(max(value - self.low, 0) // self.step, CODES - 1)


@dataclass(frozen=True, slots=True)
class Srt:
    """A semantic routing tree. ``number``: how motes call it, 1..255."""

    name: str
    number: int
    policy: Policy
    axes: tuple[Axis, ...]

    def encode(self) -> tuple[int, ...]:
        """An Srt of the protocol."""
        axes = [{"attribute": a.attribute, "low": a.low, "step": a.step} for a in self.axes]
        return tuple(programs.Srt.build({"srt": self.number, "policy": int(self.policy), "axes": axes}))

    def to_list(self) -> list[Any]:
        """For JSON."""
        return [
            self.name,
            self.number,
            int(self.policy),
            [[axis.attribute, axis.low, axis.step, axis.called] for axis in self.axes],
        ]

    @classmethod
    def from_list(cls, data: list[Any]) -> Srt:
        """The tree that :meth:`to_list` wrote."""
        name, number, policy, axes = data
        return cls(name, number, Policy(policy), tuple(Axis(*axis) for axis in axes))

    def to_dict(self) -> dict[str, Any]:
        """For people and programs: lowest values and steps in SI."""
        return {
            "name": self.name,
            "policy": self.policy.name.lower(),
            "attributes": [
                {
                    "name": axis.name,
                    "low": axis.low / 10 ** BY_NUMBER[axis.attribute].digits,
                    "step": axis.step / 10 ** BY_NUMBER[axis.attribute].digits,
                }
                for axis in self.axes
            ],
        }


#: By name in lower case.
Srts = Mapping[str, Srt]
#: The integers that an attribute is known to have in this network, for those that the gateway knows.
Values = Callable[[str], Collection[int]]


def no_values(attribute: str) -> Collection[int]:
    """Nothing is known."""
    del attribute
    return ()


def define(
    statement: ast.CreateSrt,
    number: int,
    srts: Iterable[Srt],
    values: Values = no_values,
    root: int | None = None,
    statics: Statics = NO_STATICS,
) -> Srt:
    """The tree of a CREATE SRT beside others. ``root``: the network's, None where it has not reported. Raises QueryError."""
    name = statement.name
    if name.name.lower() in [other.name.lower() for other in srts]:
        hint = f"drop it first: DROP SRT {name.name}"
        raise QueryError(f"there is a semantic routing tree '{name.name}' already", hint, name.span)
    if statement.table.name.lower() != "sensors":
        raise QueryError(
            f"a tree over '{statement.table.name}'", "trees are ON sensors", statement.table.span
        )
    if statement.root is not None and root is not None and statement.root.value != root:
        hint = f"leave ROOT out or write ROOT {root}: rows go to the gateway, whose mote that is"
        raise QueryError(f"a tree cannot begin at mote {statement.root.value}", hint, statement.root.span)
    entries = _attributes(statement, statics)
    axes = tuple(
        _axis(entry, values(_LIKE.get(entry.name, BY_NUMBER[entry.number].name))) for entry in entries
    )
    return Srt(name.name, number, _policy(statement.policy, entries), axes)


def _policy(name: ast.Name | None, entries: Collection[Attribute]) -> Policy:
    """Clustered, unless it is said; the tree does not follow what changes by itself."""
    if name is None:
        return Policy.CLUSTERED if all(entry.constant for entry in entries) else Policy.LINK
    known = [policy.name.lower() for policy in Policy]
    if name.name.lower() not in known:
        hint = f"{did_you_mean(name.name, known)}policies are {', '.join(known)}"
        raise QueryError(f"unknown policy '{name.name}'", hint, name.span)
    return Policy[name.name.upper()]


def _attributes(statement: ast.CreateSrt, statics: Statics) -> list[Attribute]:
    names: list[ast.Name] = []
    for name in statement.attributes:
        own = name.name.lower()
        axes = ("xpos", "ypos") if own == LOC else (SYNONYMS.get(own, own),)
        names += [ast.Name(axis, name.span) for axis in axes]
    made = {key: replace(BY_NUMBER[entry.number], name=entry.name) for key, entry in statics.items()}
    known = [*(entry.name for entry in BY_NAME.values() if _indexable(entry)), *made]
    for i, name in enumerate(names):
        if name.name not in known:
            hint = (
                f"{did_you_mean(name.name, known)}trees are over attributes such as nodeid, loc, room or temp"
            )
            raise QueryError(f"'{name.name}' cannot be indexed", hint, name.span)
        if name.name in [other.name for other in names[:i]]:
            raise QueryError(f"'{name.name}' is said twice", "leave one of them out", name.span)
    if len(names) > 2:
        hint = "a mote keeps four bytes for each child: make a tree for the others"
        raise QueryError(f"a tree over {len(names)} attributes", f"two at most: {hint}", names[2].span)
    return [made.get(name.name) or BY_NAME[name.name] for name in names]


def _indexable(entry: Attribute) -> bool:
    """Whether it is a value that a mote has of itself, and not of a row; users' attributes have names of their own."""
    return (
        entry.name != "epoch" and entry not in STATIC_ATTRIBUTES and obstacle(build.attribute(entry)) is None
    )


def _axis(entry: Attribute, known: Collection[int]) -> Axis:
    """Codes for the values that there are: where they are known, else for those that the attribute may have."""
    if entry.name in _NUMBERED:
        return Axis(entry.number, _NUMBERED[entry.name], 1)
    low, high = (round(bound * 10**entry.digits) for bound in (entry.minimum, entry.maximum))
    if known:
        low, high = min(known), max(known)
    called = entry.name if entry.name != BY_NUMBER[entry.number].name else ""
    return Axis(entry.number, low, max(1, -(-(high - low + 1) // CODES)), called)


def plan_of(srt: Srt, statement: ast.CreateSrt) -> QueryPlan:
    """The query that keeps a tree on the motes: it acquires the attributes, and has no rows. Raises QueryError."""
    entries = [BY_NUMBER[axis.attribute] for axis in srt.axes]
    changes = [entry.name for entry in entries if not entry.constant]
    period = CHANGING_PERIOD_MS if any(entry.sample_ms for entry in entries) else PERIOD_MAXIMUM_MS
    if statement.period is not None:
        period = _period(statement.period, changes)
    columns = tuple(Column(entry.name, build.attribute(entry), entry.format) for entry in entries)
    # Nothing passes, but to tell that all of them are acquired.
    attributes = [build.attribute(entry) for entry in entries]
    never = build.join(Op.OR, [build.compare(Op.NE, attribute, attribute) for attribute in attributes])
    return QueryPlan(
        statement.text, period, None, False, False, (), never, never,
        frozenset(entry.number for entry in entries), columns=columns,
        clauses=(Clause(Aggregate.SRT, srt.name, values=srt.encode()),), creates=True,
    )  # fmt: skip


def _period(duration: ast.Duration, changes: list[str]) -> int:
    milliseconds = round(duration.milliseconds)
    if not changes:
        raise QueryError("these attributes do not change", "leave SAMPLE PERIOD out", duration.span)
    if not PERIOD_MINIMUM_MS <= milliseconds <= PERIOD_MAXIMUM_MS:
        least, most = duration_text(PERIOD_MINIMUM_MS), duration_text(PERIOD_MAXIMUM_MS)
        what = f"SAMPLE PERIOD {duration_text(milliseconds)} is out of range"
        raise QueryError(what, f"write one from {least} to {most}", duration.span)
    return milliseconds
