"""A join as a planner says it: which aliases follow which streams, what bounds and what joins them, what of them is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from skerry.joins.conditions import Column, Condition, aliases_of, columns_of, conjuncts, equal_columns
from skerry.joins.windows import Pair, Window, WindowGraph

#: How far behind the greatest time a row may be, where nobody says otherwise: 10 min in µs.
LATENESS_US = 600_000_000


class JoinError(ValueError):
    """A join that cannot be; the message names what is wrong with it."""


@dataclass(frozen=True)
class Join:
    """``streams``: the stream that each alias follows, by alias in the order of FROM. ``where``: None is true. ``select``: columns of its
    answers beside times and numbers. Raises JoinError, WindowError."""

    streams: Mapping[str, str]
    windows: Mapping[Pair, Window]
    where: Condition | None = None
    select: tuple[Column, ...] = ()
    lateness_us: int = LATENESS_US

    def __post_init__(self) -> None:
        if self.lateness_us < 0:
            raise JoinError(f"LATENESS {self.lateness_us} µs: it must be 0 or longer")
        wanted = [*self.select, *(column for part in conjuncts(self.where) for column in columns_of(part))]
        for column in wanted:
            if column.alias not in self.streams:
                raise JoinError(
                    f"{column.alias}.{column.name}: {column.alias!r} is no alias of this join: "
                    f"they are {', '.join(self.streams)}"
                )
        assert self.graph

    @cached_property
    def graph(self) -> WindowGraph:
        """Its windows."""
        return WindowGraph(tuple(self.streams), self.windows)

    @property
    def aliases(self) -> tuple[str, ...]:
        """In the order of FROM."""
        return tuple(self.streams)

    @cached_property
    def conjuncts(self) -> list[Condition]:
        """What of WHERE must all be true."""
        return conjuncts(self.where)

    def own_conditions(self, alias: str) -> list[Condition]:
        """Those that only this alias's rows decide, or for the first one no row."""
        first = alias == self.aliases[0]
        return [
            one for one in self.conjuncts if aliases_of(one) == {alias} or (first and not aliases_of(one))
        ]

    @cached_property
    def key(self) -> dict[str, tuple[str, ...]]:
        """By alias the columns of which WHERE makes each equal over all streams; none: there is no such equality."""
        groups: list[dict[str, str]] = []
        for group in equal_columns(self.conjuncts):
            columns: dict[str, str] = {}
            for column in group:
                columns.setdefault(column.alias, column.name)
            if len(columns) == len(self.aliases):
                groups.append(columns)
        return {alias: tuple(group[alias] for group in groups) for alias in self.aliases if groups}

    def columns(self, alias: str) -> list[str]:
        """Names of the fields of an alias that the join reads."""
        read = [*self.select, *(column for part in self.conjuncts for column in columns_of(part))]
        names = [column.name for column in read if column.alias == alias]
        return list(dict.fromkeys(name for name in names if name not in ("time", "number")))
