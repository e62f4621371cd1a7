"""A join as a planner says it: which aliases follow which streams, what bounds and what joins them, what of them is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from skerry.joins.conditions import (
    Column,
    Compared,
    Condition,
    aliases_of,
    columns_of,
    conjuncts,
    equal_columns,
)
from skerry.joins.windows import UNBOUNDED, Pair, Window, WindowGraph

#: Which rows of an alias come beside what is joined before it: those that it meets; where it meets none, NULLs as well (LEFT); only the
#: latest at or before its time (ASOF).
StepKind = Literal["inner", "left", "asof", "asof left"]

#: How far behind the greatest time a row may be, where nobody says otherwise: 10 min in µs.
LATENESS_US = 600_000_000


#: LATENESS of rows that are joined with none.
NEVER_LATE_US = 1 << 61


class JoinError(ValueError):
    """A join that cannot be; the message names what is wrong with it."""


@dataclass(frozen=True)
class Step:
    """How an alias is joined with those before it. ``on``: which of its rows are met; None: all within the windows."""

    kind: StepKind
    on: Condition | None = None

    @property
    def is_asof(self) -> bool:
        """Whether only the latest row is met."""
        return self.kind.startswith("asof")

    @property
    def has_nulls(self) -> bool:
        """Whether who meets nobody is in answers."""
        return self.kind.endswith("left")


@dataclass(frozen=True)
class Join:
    """``streams``: the stream that each alias follows, by alias in the order of FROM. ``where``: None is true. ``select``: columns of its
    answers beside times and numbers. ``steps``: of each alias but the first, where one is LEFT or ASOF; ``where`` is then what the first
    one's rows are asked. Raises JoinError, WindowError."""

    streams: Mapping[str, str]
    windows: Mapping[Pair, Window]
    where: Condition | None = None
    select: tuple[Column, ...] = ()
    lateness_us: int = LATENESS_US
    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        if self.lateness_us < 0:
            raise JoinError(f"LATENESS {self.lateness_us} µs: it must be 0 or longer")
        wanted = [*self.select, *(column for part in self.conjuncts for column in columns_of(part))]
        for column in wanted:
            if column.alias not in self.streams:
                raise JoinError(
                    f"{column.alias}.{column.name}: {column.alias!r} is no alias of this join: "
                    f"they are {', '.join(self.streams)}"
                )
        assert self.graph
        self._check_steps()

    def _check_steps(self) -> None:
        for place, step in enumerate(self.steps, 1):
            said, alias = f"{step.kind.upper()} JOIN", self.aliases[place]
            if self.graph.has_rows:
                raise JoinError(
                    f"{said} within a window of ROWS: its window is one of time, such as WINDOW 10 min"
                )
            if self.graph.bounds(place + 1)[0][place] >= UNBOUNDED:
                pair = f"WINDOW({self.aliases[place - 1]}, {alias})"
                raise JoinError(
                    f"{said} of {alias} has no window with what stands before it: say one, such as {pair} = 10 min"
                )

    @property
    def kind(self) -> str:
        """How its aliases come together."""
        if self.steps:
            return ", ".join(step.kind for step in self.steps)
        return "inner" if len(self.streams) > 1 else "rows"

    @property
    def is_outer(self) -> bool:
        """Whether answers wait for progress, as rows that are missing decide them."""
        return bool(self.steps)

    @property
    def has_asof(self) -> bool:
        """Whether rows are looked for from the latest one back."""
        return any(step.is_asof for step in self.steps)

    @cached_property
    def reach_us(self) -> int:
        """So far progress goes past a row of the first alias until all that LEFT and ASOF leave open about it is decided."""
        latest = reach = 0
        for place, step in enumerate(self.steps, 1):
            distance = self.graph.bounds(place + 1)[0][place]
            # What ASOF looks for lies at the time of what is joined before, or earlier.
            latest = latest if step.is_asof else max(latest, distance)
            reach = max(reach, min(latest, distance))
        return reach

    def retention(self, place: int) -> int:
        """For how long in us progress may have gone past a row of this alias that is still needed."""
        if not self.steps:
            return self.graph.retention(place)
        return self.reach_us + self.graph.bounds(place + 1)[0][place]

    @cached_property
    def graph(self) -> WindowGraph:
        """Its windows."""
        return WindowGraph(tuple(self.streams), self.windows, alone=len(self.streams) == 1)

    @property
    def aliases(self) -> tuple[str, ...]:
        """In the order of FROM."""
        return tuple(self.streams)

    @cached_property
    def conjuncts(self) -> list[Condition]:
        """What of WHERE, and behind ON, must all be true."""
        return [*conjuncts(self.where), *(part for step in self.steps for part in conjuncts(step.on))]

    def own_conditions(self, alias: str) -> list[Condition]:
        """Those that only this alias's rows decide, or for the first one no row."""
        first = alias == self.aliases[0]
        parts = self.conjuncts
        if self.steps:
            # What ON of one alias asks of another one does not choose among the rows of that.
            place = self.aliases.index(alias)
            parts = conjuncts(self.where if first else self.steps[place - 1].on)
        return [one for one in parts if aliases_of(one) == {alias} or (first and not aliases_of(one))]

    @cached_property
    def key(self) -> dict[str, tuple[str, ...]]:
        """By alias the columns of which WHERE, or each ON, makes each equal over all streams; none: there is no such equality."""
        if self.steps:
            return self._key_of_steps
        groups: list[dict[str, str]] = []
        for group in equal_columns(self.conjuncts):
            columns: dict[str, str] = {}
            for column in group:
                columns.setdefault(column.alias, column.name)
            if len(columns) == len(self.aliases):
                groups.append(columns)
        return {alias: tuple(group[alias] for group in groups) for alias in self.aliases if groups}

    @property
    def _key_of_steps(self) -> dict[str, tuple[str, ...]]:
        """Each ON says it of its alias and one before: what another ON says is not true of a row that is missing."""
        first, equal = self.aliases[0], [_equal_pairs(step.on) for step in self.steps]
        own = dict.fromkeys(one for pairs in equal for pair in pairs for one in pair if one.alias == first)
        groups = [{first: column.name} for column in own]
        for alias, pairs in zip(self.aliases[1:], equal, strict=True):
            both = [*pairs, *((right, left) for left, right in pairs)]
            for group in groups:
                met = [
                    one for one, other in both if one.alias == alias and group.get(other.alias) == other.name
                ]
                if met:
                    group[alias] = met[0].name
        whole = [group for group in groups if len(group) == len(self.aliases)]
        return {alias: tuple(group[alias] for group in whole) for alias in self.aliases if whole}

    def columns(self, alias: str) -> list[str]:
        """Names of the fields of an alias that the join reads."""
        read = [*self.select, *(column for part in self.conjuncts for column in columns_of(part))]
        names = [column.name for column in read if column.alias == alias]
        return list(dict.fromkeys(name for name in names if name not in ("time", "number")))


def _equal_pairs(on: Condition | None) -> list[tuple[Column, Column]]:
    found = []
    for part in conjuncts(on):
        match part:
            case Compared("=", Column() as left, Column() as right):
                found.append((left, right))
    return found
