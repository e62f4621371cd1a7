"""What a query aggregates of sensors that are no motes, over windows of their rows' time; plain values, as :mod:`.source_plans`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from skerry.planner.model import source_plans as plans
from skerry.planner.model.frames import Frame, Window
from skerry.planner.model.source_plans import Term
from skerry.planner.model.table_lookups import Lookups, lookups_from_list, lookups_to_list

#: Columns of what windows give, which its users' terms read: the end, which revision it is, and by number groups and aggregates.
END, REVISION, GROUP, AGGREGATE = "_end", "_revision", "_group", "_aggregate"
#: What of rows is kept, of which aggregates are made.
ROWS, COUNT, SUM, LEAST, GREATEST, DISTINCT = "rows", "count", "sum", "least", "greatest", "distinct"
#: All values in the order of rows, NULL included: of rows that are all there.
LISTED = "listed"
#: So far behind a window's end a row's time is that brings it, where WAIT says nothing else.
WAIT_MS = 10_000
_STATES = {"COUNT": (COUNT,), "SUM": (SUM, COUNT), "AVG": (SUM, COUNT), "MIN": (LEAST,), "MAX": (GREATEST,)}


@dataclass(frozen=True, slots=True)
class State:
    """Something that is kept of an argument's values; of no argument: of rows."""

    what: str
    argument: Term | None = None


@dataclass(frozen=True, slots=True)
class SourceAggregate:
    """``kind``: COUNT, SUM, AVG, MIN or MAX; ``argument`` None: of rows. ``window`` None: of all rows that there are. Or one that is made
    of values one by one: MEDIAN, QUANTILE, VARIANCE, STDDEV, HISTOGRAM, TOP and BOTTOM, with ``constants``, as texts; ``named``: whose a
    value is."""

    kind: str
    argument: Term | None
    distinct: bool
    window: Window | None
    constants: tuple[str, ...] = ()
    named: Term | None = None

    @property
    def is_listed(self) -> bool:
        """Whether it is made of values one by one."""
        return self.kind not in _STATES

    @property
    def type(self) -> str:
        """Of its values."""
        if self.kind == "COUNT":
            return plans.INT
        if self.kind == "HISTOGRAM":
            return f"{plans.INT}[]"
        assert self.argument is not None
        if self.named is not None:
            return plans.RANKED_INT if self.argument.type == plans.INT else plans.RANKED_DOUBLE
        return plans.DOUBLE if self.kind in ("AVG", "VARIANCE", "STDDEV") else self.argument.type

    @property
    def states(self) -> tuple[State, ...]:
        """What it is made of."""
        if self.argument is None:
            return (State(ROWS),)
        if self.distinct and self.kind == "COUNT":
            return (State(DISTINCT, self.argument),)
        if self.is_listed:
            return tuple(State(LISTED, of) for of in (self.argument, self.named) if of is not None)
        return tuple(State(what, self.argument) for what in _STATES[self.kind])


@dataclass(frozen=True, slots=True)
class SourceFold:
    """What executors make of a stream's rows: those that ``where`` lets pass, once they are joined with tables, by pane of ``width_ms``
    and by group."""

    where: Term | None
    groups: tuple[Term, ...]
    states: tuple[State, ...]
    width_ms: int
    lookups: Lookups | None = None

    def to_text(self) -> str:
        """JSON."""
        where = self.where.to_list() if self.where is not None else None
        states = [
            [state.what, state.argument.to_list() if state.argument is not None else None]
            for state in self.states
        ]
        groups = [term.to_list() for term in self.groups]
        return json.dumps([where, groups, states, self.width_ms, lookups_to_list(self.lookups)])

    @classmethod
    def from_text(cls, text: str) -> SourceFold:
        """What :meth:`to_text` wrote."""
        where, groups, states, width_ms, lookups = json.loads(text)
        return cls(
            Term.from_list(where) if where is not None else None,
            tuple(map(Term.from_list, groups)),
            tuple(
                State(what, Term.from_list(argument) if argument is not None else None)
                for what, argument in states
            ),
            width_ms,
            lookups_from_list(lookups),
        )


@dataclass(frozen=True, slots=True)
class SourceGrouping:
    """GROUP BY, HAVING and the aggregates of a query. ``frame``: its windows; None: they are over static columns. ``wait_ms``: so far
    behind a window's end a row's time is that brings it. ``revises``: whether rows come again that something late has changed."""

    groups: tuple[Term, ...]
    aggregates: tuple[SourceAggregate, ...]
    having: Term | None
    frame: Frame | None
    wait_ms: int = WAIT_MS
    revises: bool = False

    def fold(self, where: Term | None, lookups: Lookups | None = None) -> SourceFold:
        """What is to be made of rows for it, joined with tables before."""
        states = [State(ROWS), *(state for one in self.aggregates for state in one.states)]
        width = self.frame.width_ms if self.frame is not None else 1
        return SourceFold(where, self.groups, tuple(dict.fromkeys(states)), width, lookups)

    def terms(self) -> Iterator[Term]:
        """Over the stream's columns."""
        yield from self.groups
        for one in self.aggregates:
            yield from (term for term in (one.argument, one.named) if term is not None)

    def types(self) -> dict[str, str]:
        """Of the columns that its windows give."""
        found = {END: plans.TIMESTAMP, REVISION: plans.INT}
        found |= {f"{GROUP}{i}": term.type for i, term in enumerate(self.groups)}
        return found | {f"{AGGREGATE}{i}": one.type for i, one in enumerate(self.aggregates)}
