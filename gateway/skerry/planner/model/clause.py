"""A field of a mote query that is no column: what it waits for and does, where its rows go, what its queue does."""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from skerry.catalog import actions
from skerry.expressions.assembler import assemble
from skerry.expressions.expression import Expr, from_list, render
from skerry.sql.ast import Span
from skerry.sql.units import duration_text
from skerry_protocol.bytecode import constant
from skerry_protocol.codes import Aggregate, EventFlag, Match
from skerry_protocol.commands import NO_ARGUMENT, event_number
from skerry_protocol.limits import EVENT_RUNS
from skerry_protocol.programs import OnEvent

_MET = {
    Match.ALL: "the rows",
    Match.LINEAR: "the values, between two rows,",
    Match.COMBINE: "the last period's rows, combined,",
}
_SAID = {
    Aggregate.STORE: "keep the rows in storage point",
    Aggregate.INTO: "keep the rows in storage point",
    Aggregate.INDEX: "send the rows to the motes that store index",
    Aggregate.SRT: "keep semantic routing tree",
    Aggregate.PAIRS: "join rows of pairs of motes above both, with",
    Aggregate.ROUTE: "go where it can apply by semantic routing tree",
}


@dataclass(frozen=True, slots=True)
class Clause:
    """A field of the program that is no column. ``name``: of the event or command."""

    kind: Aggregate
    name: str
    expr: Expr | None = None
    #: Of ON EVENT: lasts (s), flags, group, step (s), where ``expr`` is a condition of the event; of what is about storage points, the
    #: bytes of its code.
    values: tuple[int, ...] = ()
    #: Of motes that join their rows: the pairs that the gateway joins.
    pairs: tuple[tuple[int, int], ...] = ()

    def encode(self) -> dict[str, Any]:
        """A ProgramField."""
        number = event_number(self.name)
        code = assemble(self.expr) if self.expr is not None else b""
        operation = 0
        if self.kind is Aggregate.ACTION:
            operation = actions.find(self.name).number
            code = code or constant(NO_ARGUMENT)
        elif self.kind is Aggregate.ON_EVENT:
            lasts, flags, group, step = self.values
            fields = {"event": number, "lasts": lasts, "flags": flags, "group": group, "step": step}
            code = bytes(OnEvent.build(fields)) + code
        elif self.values:
            code = bytes(self.values)
        else:
            code = number.to_bytes(2, "little") + code
        return {"format": operation, "aggregate": int(self.kind), "code": code}

    def to_list(self) -> list[Any]:
        """For JSON."""
        return [
            int(self.kind),
            self.name,
            self.expr.to_list() if self.expr is not None else None,
            list(self.values),
            [list(pair) for pair in self.pairs],
        ]

    @classmethod
    def from_list(cls, data: list[Any]) -> Clause:
        """The clause that :meth:`to_list` wrote."""
        kind, name, expr, values, *pairs = data
        made = from_list(expr) if expr else None
        return cls(Aggregate(kind), name, made, tuple(values), tuple((s, t) for s, t in (pairs or [[]])[0]))

    def __str__(self) -> str:
        if self.kind in _SAID:
            return f"{_SAID[self.kind]} {self.name}"
        return self._gathers() if self.kind is Aggregate.GATHER else self._acts()

    def _gathers(self) -> str:
        mote, zones = self.values[2] | self.values[3] << 8, self.values[8]
        return (
            f"mote {mote} gathers in each epoch what the {zones} that may have it find of index {self.name}"
        )

    def _acts(self) -> str:
        match self.kind:
            case Aggregate.ACTION:
                return f"run {self.name}({render(self.expr) if self.expr else ''}) with each row"
            case Aggregate.SIGNAL:
                does = (
                    "start the query of OUTPUT ACTION"
                    if _NESTED.fullmatch(self.name)
                    else f"raise event {self.name}"
                )
                return f"{does} with the first of several rows in a row"
            case Aggregate.ON_EVENT:
                return _waits(self)
            case Aggregate.FROM:
                return f"join with {_MET[Match(self.values[2])]} of storage point {self.name}"
        return f"stop with event {self.name}" + (f" where {render(self.expr)}" if self.expr else "")


def aligned_ms(clauses: Iterable[Clause]) -> int | None:
    """The sample period of ON ALIGNED EVENT, which motes count on a grid from the event on; None: the query has none."""
    for clause in clauses:
        if (
            clause.kind is Aggregate.ON_EVENT
            and clause.values[1] & (EventFlag.ALIGNED | EventFlag.OWN) == EventFlag.ALIGNED
        ):
            return clause.values[3] * 1000
    return None


def own_event(clauses: Iterable[Clause]) -> str | None:
    """The event of which each mote's own are rows; None: there is none."""
    for clause in clauses:
        if clause.kind is Aggregate.ON_EVENT and clause.values[1] & EventFlag.OWN:
            return clause.name
    return None


def _waits(clause: Clause) -> str:
    lasts, flags, group, step = clause.values
    if flags & EventFlag.OWN:
        return f"have a row with each event {clause.name} of their own, {duration_text(step * 1000)} behind the one before at least"
    if flags & EventFlag.HEARD:
        return _asks(clause)
    if flags & EventFlag.TIMER:
        return f"run for {lasts} s each {duration_text(step * 1000)}"
    again = "each event starts it anew"
    if flags & EventFlag.NO_OVERLAP:
        again = "an event meanwhile changes nothing"
    elif flags & EventFlag.EACH:
        again = f"events of up to {EVENT_RUNS} motes run it side by side, the same mote's next starts it anew"
    aligned = (
        f", each {duration_text(step * 1000)} from the event's time on" if flags & EventFlag.ALIGNED else ""
    )
    return f"run for {lasts} s after event {clause.name} (alternative {group + 1}){aligned}; {again}"


def _asks(clause: Clause) -> str:
    lasts, flags, _, step = clause.values
    times, each = lasts // step, duration_text(step * 1000)
    where = f" where {render(clause.expr)}" if clause.expr is not None else ""
    often = "once" if times == 1 else f"{times} times, each {each}"
    again = (
        "an event meanwhile changes nothing"
        if flags & EventFlag.NO_OVERLAP
        else "an event meanwhile asks anew"
    )
    return f"ask {often} from event {clause.name}{where} on, and wait for {each} for answers; {again}"


#: What :func:`nested_event` calls one.
_NESTED = re.compile("_[0-9a-f]{8}")


def nested_event(text: str, span: Span) -> str:
    """The event between a query and one that its rows start: its own for each such query."""
    return f"_{crc32(text[span.start : span.end].encode()):08x}"
