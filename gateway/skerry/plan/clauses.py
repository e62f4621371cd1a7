"""What a query waits for and does: ON EVENT, STOP ON EVENT, OUTPUT ACTION, SIGNAL. Source: TinyDB 2005, 3.5 and 3.7."""

from __future__ import annotations

from binascii import crc_hqx
from dataclasses import dataclass
from typing import Any

from skerry.lang import ast
from skerry.lang.errors import QueryError, did_you_mean
from skerry.plan.assembler import assemble, obstacle
from skerry.plan.expression import Expr, from_list, render
from skerry.plan.resolve import Resolver
from skerry.plan.scope import SENSORS, Scope
from skerry_protocol.packets import Aggregate, CommandOp, Match, OnEvent

#: Commands that a query may run, with what their argument is.
COMMANDS: dict[str, tuple[CommandOp, str]] = {
    "leds": (CommandOp.SET_LEDS, "0 to 7: 1 red, 2 green and 4 yellow, added up"),
}


_MET = {
    Match.ALL: "the rows",
    Match.LINEAR: "the values, between two rows,",
    Match.COMBINE: "the last period's rows, combined,",
}


def event_number(name: str) -> int:
    """How motes call an event: the CRC-16 of its name in lower case."""
    return crc_hqx(name.lower().encode(), 0xFFFF)


@dataclass(frozen=True, slots=True)
class Clause:
    """A field of the program that is no column. ``name``: of the event or command; ``lasts`` in s."""

    kind: Aggregate
    name: str
    expr: Expr | None = None
    lasts: int = 0
    no_interleave: bool = False
    #: Bytes of the code of what is about storage points.
    values: tuple[int, ...] = ()

    def encode(self) -> dict[str, Any]:
        """A ProgramField."""
        number = event_number(self.name)
        code = assemble(self.expr) if self.expr is not None else b""
        operation = 0
        if self.kind is Aggregate.ACTION:
            operation = int(COMMANDS[self.name.lower()][0])
        elif self.kind is Aggregate.ON_EVENT:
            values = {"event": number, "lasts": self.lasts, "no_interleave": int(self.no_interleave)}
            code = bytes(OnEvent.build(values))
        elif self.values:
            code = bytes(self.values)
        else:
            code = number.to_bytes(2, "little") + code
        return {"format": operation, "aggregate": int(self.kind), "code": code}

    def to_list(self) -> list[Any]:
        """For JSON."""
        expr = self.expr.to_list() if self.expr is not None else None
        return [int(self.kind), self.name, expr, self.lasts, self.no_interleave, list(self.values)]

    @classmethod
    def from_list(cls, data: list[Any]) -> Clause:
        """The clause that :meth:`to_list` wrote."""
        kind, name, expr, lasts, no_interleave, *values = data
        own = from_list(expr) if expr else None
        return cls(Aggregate(kind), name, own, lasts, no_interleave, tuple(values[0]) if values else ())

    def __str__(self) -> str:
        match self.kind:
            case Aggregate.ACTION:
                return f"run {self.name}({render(self.expr) if self.expr else ''}) with each row"
            case Aggregate.SIGNAL:
                return f"raise event {self.name} with the first of several rows in a row"
            case Aggregate.ON_EVENT:
                again = (
                    "an event meanwhile changes nothing"
                    if self.no_interleave
                    else "each event starts it anew"
                )
                return f"run for {self.lasts} s after event {self.name}; {again}"
            case Aggregate.STORE | Aggregate.INTO:
                return f"keep the rows in storage point {self.name}"
            case Aggregate.FROM:
                return f"join with {_MET[Match(self.values[2])]} of storage point {self.name}"
        return f"stop with event {self.name}" + (f" where {render(self.expr)}" if self.expr else "")


def clauses_of(
    select: ast.Select, aggregate: bool, lasts_ms: int | None, scope: Scope = SENSORS
) -> tuple[Clause, ...]:
    """What a query waits for and does; ``lasts_ms``: its FOR. Raises QueryError."""
    found = [_on_event(select, lasts_ms)] if select.event is not None else []
    found += [_stop(stop) for stop in select.stops]
    for output in select.outputs:
        if aggregate:
            hint = "motes act on rows of their own: leave the aggregate out"
            raise QueryError("an aggregate is known at the root only", hint, output.span)
        found.append(_output(output, scope))
    return tuple(found)


def _on_event(select: ast.Select, lasts_ms: int | None) -> Clause:
    assert select.event is not None
    if lasts_ms is None:
        hint = "write SAMPLE PERIOD n FOR n, or ONCE"
        raise QueryError("ON EVENT needs to know how long the query runs", hint, select.event.span)
    lasts = max(1, -(-lasts_ms // 1000))
    return Clause(Aggregate.ON_EVENT, select.event.name, None, lasts, select.no_interleave)


def _stop(stop: ast.StopOn) -> Clause:
    where = None
    if stop.where is not None:
        where = Resolver("is not allowed here: each mote decides for itself").condition(
            stop.where, "STOP ON EVENT"
        )
        if reason := obstacle(where):
            raise QueryError("this condition cannot be evaluated by a mote", reason, stop.where.span)
    return Clause(Aggregate.STOP_ON, stop.event.name, where)


def _output(output: ast.Output, scope: Scope) -> Clause:
    if output.signal:
        return Clause(Aggregate.SIGNAL, output.name.name)
    name = output.name.name.lower()
    if name not in COMMANDS:
        hint = f"{did_you_mean(name, list(COMMANDS))}commands are {', '.join(COMMANDS)}"
        raise QueryError(f"unknown command '{output.name.name}'", hint, output.name.span)
    if output.argument is None:
        raise QueryError(f"{name} needs an argument", f"it is {COMMANDS[name][1]}", output.span)
    resolver = Resolver("is not allowed here: a mote acts on its own row", scope=scope)
    argument = resolver.number(output.argument, name)
    if argument.digits or (reason := obstacle(argument)):
        reason = "it has to be a whole number" if argument.digits else reason
        raise QueryError(f"this is no argument of {name}", reason or "", output.argument.span)
    return Clause(Aggregate.ACTION, name, argument)
