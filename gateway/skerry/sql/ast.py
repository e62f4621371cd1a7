"""The syntax tree: frozen, each node with its place in the text. Names are not looked up yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from operator import is_
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from skerry.sql.join_strategies import JoinHints

_Node = TypeVar("_Node")
#: By kind of node, names of what it is made of; None: it is none. To find them takes as long as much of a query's planning.
_PARTS: dict[type, tuple[str, ...] | None] = {}


@dataclass(frozen=True, slots=True)
class Span:
    """Character offsets: from ``start`` up to, without, ``end``."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """From this to the end of the other."""
        return Span(self.start, other.end)


@dataclass(frozen=True, slots=True)
class Number:
    """A literal with its unit as written, if any."""

    value: Decimal
    unit: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Text:
    """A literal in ', without these."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Null:
    """The literal NULL."""

    span: Span


@dataclass(frozen=True, slots=True)
class Name:
    """An attribute. ``table``: what stands before the point, where there is one; ``quoted``: it stands in quotation marks; ``stream``: of
    a name of three parts the middle one."""

    name: str
    span: Span
    table: str | None = None
    quoted: bool = field(default=False, compare=False)
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """``function([DISTINCT] argument, …)``. ``star``: ``*`` stands before the arguments, of which there may be none."""

    function: str
    arguments: tuple[Expression, ...]
    distinct: bool
    span: Span
    star: bool = False


@dataclass(frozen=True, slots=True)
class Unary:
    """``-`` or ``NOT``."""

    operator: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """``+ - * / % >>``, ``= <> < <= > >=``, ``AND``, ``OR``."""

    operator: str
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class IsNull:
    """``operand IS [NOT] NULL``."""

    operand: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Between:
    """``operand [NOT] BETWEEN low AND high``, both inclusive."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class InList:
    """``operand [NOT] IN (item, …)``."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Like:
    """``operand [NOT] LIKE pattern``: % stands for any characters, _ for any one."""

    operand: Expression
    pattern: Text
    negated: bool
    span: Span


Expression = Number | Text | Null | Name | Call | Unary | Binary | IsNull | Between | InList | Like


@dataclass(frozen=True, slots=True)
class Star:
    """``*`` in the SELECT list, or with ``table`` before its point ``a.*``: all columns of that one."""

    span: Span
    table: str | None = None


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An expression of the SELECT list with its name after AS, if any."""

    expression: Expression | Star
    alias: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Ordered:
    """An expression of ORDER BY."""

    expression: Expression
    descending: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in ms, not rounded: ``SAMPLE PERIOD 0.1 ms`` is for the planner to refuse.

    ``assumed``: where no unit is written, how it is read, as in ``SAMPLE PERIOD 10 is 10 s``.
    """

    milliseconds: Decimal
    span: Span
    assumed: str | None = None


@dataclass(frozen=True, slots=True)
class Rounds:
    """``FOR n`` without a unit: so many sample periods (TinyDB 2005, appendix B)."""

    count: Decimal
    span: Span


@dataclass(frozen=True, slots=True)
class SamplePeriod:
    """``SAMPLE PERIOD period [FOR duration]``, also written ``EPOCH DURATION``. ``default``: none is written."""

    period: Duration
    duration: Duration | Rounds | None
    span: Span
    default: bool = False


@dataclass(frozen=True, slots=True)
class Once:
    """``ONCE``."""

    span: Span


@dataclass(frozen=True, slots=True)
class Lifetime:
    """``LIFETIME duration [MIN SAMPLE RATE least]``. ``least``: the longest time between samples."""

    duration: Duration
    least: Duration | None
    span: Span


@dataclass(frozen=True, slots=True)
class Recorded:
    """No clause says when to sample: rows of the past as they were recorded."""

    span: Span


@dataclass(frozen=True, slots=True)
class History:
    """``HISTORY duration [ONLY]``: rows of the past, too, or no others."""

    duration: Duration
    only: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Output:
    """``OUTPUT ACTION name(argument)``, also ``TRIGGER ACTION``."""

    name: Name
    argument: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class Signal:
    """``[OUTPUT [ACTION]] SIGNAL name(parameter, …)``."""

    name: Name
    parameters: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Event:
    """An event after ``ON``: its name, and the parameters in parentheses behind it. ``every``: EVERY(time), no event but a timer."""

    name: Name
    parameters: tuple[Name, ...]
    every: Duration | None
    span: Span


@dataclass(frozen=True, slots=True)
class OnEvent:
    """``ON [ALIGNED] EVENT … [NO OVERLAP]``: any of ``alternatives``, each of which is events that all have to come.

    ``no_overlap``: an event while the query runs changes nothing.
    """

    alternatives: tuple[tuple[Event, ...], ...]
    aligned: bool
    no_overlap: bool
    span: Span

    @property
    def events(self) -> tuple[Event, ...]:
        """All of them."""
        return tuple(event for all_of in self.alternatives for event in all_of)


@dataclass(frozen=True, slots=True)
class StopOn:
    """``STOP ON [EVENT] event [(parameter, …)] [WHERE where]``."""

    event: Name
    parameters: tuple[Name, ...]
    where: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class JoinWindow:
    """``WINDOW [(one, other)] [=] size``. ``pair``: the aliases between which it is; None: between all. ``size``: its unit is one of
    time, or ROWS."""

    pair: tuple[Name, Name] | None
    size: Number
    span: Span


@dataclass(frozen=True, slots=True)
class Joined:
    """``JOIN … ON condition [WINDOW …]`` around a table. ``kind``: INNER, LEFT, ASOF or ASOF LEFT. ``on``: None where nothing of it is
    left to be asked of rows that meet."""

    kind: str
    on: Expression | None
    windows: tuple[JoinWindow, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Table:
    """One of FROM: sensors, where FROM is left out, a storage point or a table. ``past``: so far back, and not the present; ``latest``:
    where FROM LATEST stands; ``function``: of a table function, its call, and ``name`` is the table that its arguments are of;
    ``joined``: how it is joined with those before it, where a comma does not say so."""

    name: Name
    alias: str | None
    past: Duration | None = None
    latest: Span | None = None
    function: Call | None = None
    joined: Joined | None = None

    @property
    def called(self) -> str:
        """What stands before the point of its columns, in lower case."""
        return (self.alias or self.name.name).lower()


@dataclass(frozen=True, slots=True)
class Interpolate:
    """``INTERPOLATE LINEAR``."""

    span: Span


@dataclass(frozen=True, slots=True)
class Queue:
    """``QUEUE policy [SIZE size] [SEND PERIOD send]``."""

    policy: Name
    size: Number | None
    send: Duration | None
    span: Span


@dataclass(frozen=True, slots=True)
class Approximate:
    """``APPROXIMATE WITHIN within``."""

    within: Number
    span: Span


@dataclass(frozen=True, slots=True)
class Wait:
    """``WAIT duration``: for how long an aggregate waits for what belongs to an epoch."""

    duration: Duration
    span: Span


@dataclass(frozen=True, slots=True)
class JoinStrategy:
    """``JOIN AT ANCESTOR`` and its like: how motes' rows are to be joined with each other; ``words`` in upper case."""

    words: str
    span: Span


@dataclass(frozen=True, slots=True)
class Select:
    """A query. ``no_interleave``: all is sampled before any condition is asked. ``nested``: where queries stand that its rows start;
    ``into``: the storage point that its rows go to; ``combine``: aggregates over a point's rows; ``buffers``: where BUFFER stands in
    a CREATE's AS SELECT; ``start_now``: where START NOW stands."""

    items: tuple[SelectItem, ...]
    tables: tuple[Table, ...]
    where: Expression | None
    groups: tuple[Expression, ...]
    having: Expression | None
    sampling: SamplePeriod | Once | Lifetime | Recorded
    event: OnEvent | None
    no_interleave: bool
    outputs: tuple[Output, ...]
    signals: tuple[Signal, ...]
    nested: tuple[Span, ...]
    stops: tuple[StopOn, ...]
    into: Name | None
    combine: tuple[Expression, ...]
    interpolate: Interpolate | None
    text: str
    history: History | None = None
    order: tuple[Ordered, ...] = ()
    limit: Number | None = None
    queue: Queue | None = None
    approximate: Approximate | None = None
    buffers: tuple[Span, ...] = ()
    start_now: Span | None = None
    wait: Wait | None = None
    #: Whether one of its tables is one of sensors that are no motes.
    of_sensors: bool = False
    #: Of a join of streams: its windows, how late rows may be, and by which algorithm it is to run.
    windows: tuple[JoinWindow, ...] = ()
    lateness: Duration | None = None
    using: Name | None = None
    #: Of a table function: after so many rows, or so long, what is found comes.
    every: Number | None = None
    #: Where motes are to join their rows; None: they join none, or nothing says where.
    strategy: JoinStrategy | None = None
    #: What is said of a join of two motes besides; None: nothing.
    hints: JoinHints | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """``STOP QUERY id``; ``DROP ALL``: query None, all of the user's. The id is the user's query's, not a mote query's."""

    query: int | None
    text: str


@dataclass(frozen=True, slots=True)
class CreatePoint:
    """``CREATE [CIRCULAR] STORAGE POINT name SIZE size [unit] [(field type, …) [SAMPLE PERIOD …] | AS SELECT …]``.

    ``unit``: None or ROWS, else of time, with ``size`` in it. ``fields``: names and types; ``sampled``: with a sample period, of
    attributes, for which ``filling`` is the query.
    """

    name: Name
    circular: bool
    size: Number
    fields: tuple[tuple[Name, Name], ...]
    filling: Select | None
    text: str
    sampled: bool = False


@dataclass(frozen=True, slots=True)
class DropPoint:
    """``DROP STORAGE POINT name``."""

    name: Name
    text: str


@dataclass(frozen=True, slots=True)
class CreateSrt:
    """``CREATE SRT name ON table (attribute, …) [ROOT root] [POLICY policy] [SAMPLE PERIOD period]``."""

    name: Name
    table: Name
    attributes: tuple[Name, ...]
    root: Number | None
    policy: Name | None
    period: Duration | None
    text: str


@dataclass(frozen=True, slots=True)
class DropSrt:
    """``DROP SRT name``."""

    name: Name
    text: str


Statement = Select | Stop | CreatePoint | DropPoint | CreateSrt | DropSrt


def walk(node: Any) -> Iterator[Any]:
    """A part of the tree, and all nodes below it, as they are written, however deep they are."""
    left = [node]
    while left:
        found = left.pop()
        if isinstance(found, tuple):
            left += reversed(found)
        elif (parts := _parts(type(found))) is not None:
            yield found
            left += [getattr(found, part) for part in reversed(parts)]


def _parts(kind: type) -> tuple[str, ...] | None:
    """Names of what nodes of this kind are made of; None: they are no nodes."""
    if kind not in _PARTS:
        _PARTS[kind] = tuple(part.name for part in fields(kind)) if is_dataclass(kind) else None
    return _PARTS[kind]


def operands(node: Expression, operator: str) -> list[Expression]:
    """What AND, or OR, joins side by side, of any number."""
    found: list[Expression] = []
    left: list[Expression] = [node]
    while left:
        one = left.pop()
        if isinstance(one, Binary) and one.operator == operator:
            left += [one.left, one.right]
        else:
            found.append(one)
    return found[::-1]


def depth(node: Any) -> int:
    """Operators and functions within each other, at most; what AND or OR joins is side by side."""
    deepest, left = 0, [(node, 0)]
    while left:
        found, above = left.pop()
        if isinstance(found, tuple):
            left += [(item, above) for item in found]
        elif isinstance(found, Binary) and found.operator in ("AND", "OR"):
            left += [(part, above + 1) for part in operands(found, found.operator)]
            deepest = max(deepest, above + 1)
        elif (parts := _parts(type(found))) is not None:
            within = above + isinstance(found, Call | Unary | Binary | IsNull | Between | InList | Like)
            deepest = max(deepest, within)
            left += [(getattr(found, part), within) for part in parts]
    return deepest


def rewritten(node: Any, kind: type[_Node], change: Callable[[_Node], _Node]) -> Any:
    """A part of the tree with all nodes of a kind changed, inner ones first."""
    if isinstance(node, tuple):
        items = tuple(rewritten(item, kind, change) for item in node)
        return node if all(map(is_, items, node)) else items
    names = _parts(type(node))
    if names is None:
        return node
    had = [getattr(node, name) for name in names]
    parts = [rewritten(part, kind, change) for part in had]
    made = node if all(map(is_, parts, had)) else replace(node, **dict(zip(names, parts, strict=True)))
    return change(made) if isinstance(made, kind) else made
