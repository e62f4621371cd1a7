"""GROUP BY, HAVING and aggregates of a SELECT over a table of sensors, or over a join: over windows of their rows' time, or over static
columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from skerry.planner.model import source_plans as plans
from skerry.planner.model import source_windows as windows
from skerry.planner.model.frames import PANES_MAXIMUM, Frame, Window
from skerry.planner.model.source_plans import SourceOutput, Term
from skerry.planner.model.source_windows import SourceAggregate, SourceGrouping
from skerry.sensors import value_aggregates
from skerry.sensors.definitions import TIME
from skerry.sensors.found import Found
from skerry.sensors.resolver import Resolver
from skerry.sql import ast
from skerry.sql.errors import QueryError
from skerry.sql.units import duration_text, time_of
from skerry.sql.written import written

KINDS = ("COUNT", "SUM", "AVG", "MIN", "MAX")
_START, _REVISION = "start", "revision"
_EXAMPLE = "AVG(level, 5 min), AVG(level, 5 min, 1 min) or AVG(level, start, 1 min)"
#: The longest window, slide and WAIT.
_LONGEST_MS = 7 * 86_400_000
_ORDERED = plans.NUMBERS | {plans.TEXT, plans.TIMESTAMP}


def aggregates(select: ast.Select) -> bool:
    """Whether a query has groups or aggregates."""
    if select.groups or select.having is not None:
        return True
    parts = (select.items, tuple(one.expression for one in select.order))
    names = (*KINDS, *value_aggregates.KINDS)
    return any(isinstance(node, ast.Call) and node.function.upper() in names for node in ast.walk(parts))


@dataclass(slots=True)
class _Found:
    """What has been met so far of a query."""

    groups: list[Term]
    units: list[str]
    aggregates: list[SourceAggregate] = field(default_factory=list)
    spans: list[ast.Span] = field(default_factory=list)


class GroupedResolver(Resolver):
    """Expressions over what windows give: names are of groups, or stand in aggregates."""

    __slots__ = ("_found", "_rows")
    _found: _Found
    _rows: Resolver

    def __init__(self, rows: Resolver, select: ast.Select) -> None:
        super().__init__(rows.table, rows.called, rows.shapes)
        groups = [rows.expression(_meant(node, select)) for node in select.groups]
        for node, known in zip(select.groups, groups, strict=True):
            if known.term.type.endswith("[]"):
                raise QueryError("an array is no group", "group by what is one value in each row", node.span)
        found = _Found([known.term for known in groups], [known.unit for known in groups])
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_found", found)

    @property
    def found(self) -> _Found:
        """What has been met so far."""
        return self._found

    def terms(self) -> list[Term]:
        """Over the table's columns, what is grouped by and what is aggregated."""
        of = [term for one in self.found.aggregates for term in (one.argument, one.named)]
        return [*self.found.groups, *(term for term in of if term is not None)]

    @property
    def windows(self) -> bool:
        """Whether any aggregate has a window."""
        return any(one.window is not None for one in self.found.aggregates)

    def expression(self, node: ast.Expression, beside: Found | None = None) -> Found:
        """See :meth:`Resolver.expression`. Raises QueryError."""
        if isinstance(node, ast.Call) and node.function.upper() in KINDS:
            return self._aggregate(node)
        if isinstance(node, ast.Call) and value_aggregates.is_one(node.function.upper()):
            return self._placed(*value_aggregates.called(node, self._rows), node.span)
        if isinstance(node, ast.Call) and node.function.upper() == value_aggregates.ERROR:
            return value_aggregates.error_of(node, self._rows)
        if isinstance(node, ast.Number | ast.Text | ast.Null):
            return super().expression(node, beside)
        group = self._group(node)
        if group is not None:
            return group
        return self._named(node) if isinstance(node, ast.Name) else super().expression(node, beside)

    def _group(self, node: ast.Expression) -> Found | None:
        if any(isinstance(part, ast.Call) for part in ast.walk(node)):
            return None
        try:
            term = self._rows.expression(node).term
        except QueryError:
            return None
        if term not in self.found.groups:
            return None
        place = self.found.groups.index(term)
        return Found(Term("column", term.type, (), f"{windows.GROUP}{place}"), self.found.units[place])

    def _named(self, node: ast.Name) -> Found:
        name = node.name.lower()
        if name == _REVISION and not self._knows(node):
            return Found(Term("column", plans.INT, (), windows.REVISION))
        term = self._rows.expression(node).term
        if name == TIME and term.value == plans.TIME:
            return Found(Term("column", plans.TIMESTAMP, (), windows.END))
        said = ".".join(part for part in (node.table, node.stream, node.name) if part)
        hint = f"write GROUP BY {said}, or what is to be made of it, as in MAX({said}, 5 min)"
        raise QueryError(f"'{node.name}' is of a row, and this one is of many", hint, node.span)

    def _knows(self, node: ast.Name) -> bool:
        try:
            self._rows.expression(node)
        except QueryError:
            return False
        return True

    def _aggregate(self, node: ast.Call) -> Found:
        kind = node.function.upper()
        behind = node.arguments if node.star else node.arguments[1:]
        if not node.star and not node.arguments:
            raise QueryError(f"{kind} of nothing", f"write {_EXAMPLE}", node.span)
        if node.star and (kind != "COUNT" or node.distinct):
            raise QueryError(f"{kind} is of a value", f"write {kind}(a column), or COUNT(*)", node.span)
        argument, unit = None, ""
        if not node.star:
            known = self._rows.expression(node.arguments[0])
            argument, unit = known.term, known.unit if kind != "COUNT" else ""
            _check(kind, argument, node.arguments[0].span, distinct=node.distinct)
        made = SourceAggregate(kind, argument, node.distinct, _window(behind, node.span))
        return self._placed(made, unit, node.span)

    def _placed(self, made: SourceAggregate, unit: str, span: ast.Span) -> Found:
        """An aggregate by its number."""
        found = self.found
        if made not in found.aggregates:
            found.aggregates.append(made)
            found.spans.append(span)
        place = found.aggregates.index(made)
        return Found(Term("column", made.type, (), f"{windows.AGGREGATE}{place}"), unit)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a query gives: columns, the order of rows, and HAVING; terms over what windows give, where it is ``grouped``, or over rows."""

    outputs: tuple[SourceOutput, ...]
    order: tuple[tuple[Term, bool], ...]
    having: Term | None
    grouped: GroupedResolver | None

    def terms(self) -> list[Term]:
        """All of them."""
        of_outputs = [output.term for output in self.outputs] + [term for term, _ in self.order]
        return of_outputs + ([self.having] if self.having is not None else [])

    def of_rows(self) -> list[Term]:
        """Terms over rows that these are made of."""
        return self.terms() if self.grouped is None else self.grouped.terms()


def shown_of(
    select: ast.Select, rows: Resolver, outputs_of: Callable[[ast.Select, Resolver], Sequence[SourceOutput]]
) -> Shown:
    """Of a query over such rows. Raises QueryError."""
    grouped = GroupedResolver(rows, select) if aggregates(select) else None
    names = grouped or rows
    outputs = tuple(outputs_of(select, names))
    order = tuple(
        (names.expression(_ordered(one.expression, select)).term, one.descending) for one in select.order
    )
    having = _having(select, names)
    return Shown(outputs, order, having, grouped)


def _having(select: ast.Select, names: Resolver) -> Term | None:
    """What is asked of groups. Raises QueryError."""
    if select.having is None:
        return None
    try:
        return names.condition(select.having)
    except QueryError:
        called = {
            item.alias.lower(): item.expression
            for item in select.items
            if item.alias is not None and not isinstance(item.expression, ast.Star)
        }
        for part in ast.walk(select.having):
            if isinstance(part, ast.Name) and part.table is None and part.name.lower() in called:
                of = called[part.name.lower()]
                hint = f"it is what a column is called: write {written(of)} here, too"
                raise QueryError(f"'{part.name}' in HAVING is no column", hint, part.span) from None
        raise


def _ordered(node: ast.Expression, select: ast.Select) -> ast.Expression:
    """What ORDER BY names: by its name or its number, a column of SELECT may be."""
    items = [
        (item.alias, item.expression) for item in select.items if not isinstance(item.expression, ast.Star)
    ]
    if (
        isinstance(node, ast.Number)
        and node.unit is None
        and 1 <= node.value <= len(items) == len(select.items)
    ):
        return items[int(node.value) - 1][1]
    if isinstance(node, ast.Name) and node.table is None:
        return next(
            (found for alias, found in items if alias is not None and alias.lower() == node.name.lower()),
            node,
        )
    return node


def grouping(select: ast.Select, shown: Shown, *, static: bool, behind_us: int) -> SourceGrouping | None:
    """What a query aggregates, if it does. ``static``: over rows that are there, not over windows; ``behind_us``: so far rows come behind
    their time. Raises QueryError."""
    if shown.grouped is None:
        return None
    found = shown.grouped.found
    span = select.groups[0].span if select.groups else found.spans[0] if found.spans else select.items[0].span
    if not found.aggregates and not static:
        hint = "say what is to be known of each, as in COUNT(*, 5 min)"
        raise QueryError("a stream has no end at which its groups could be known", hint, span)
    for one, where in zip(found.aggregates, found.spans, strict=True):
        if one.is_listed and (not static or select.history is not None or len(select.tables) > 1):
            hint = (
                f"there are {', '.join(KINDS)}; the others are of indexes, static columns and the newest rows"
            )
            raise QueryError(f"{one.kind} is not of what comes one after the other", hint, where)
    lacking = [where for one, where in zip(found.aggregates, found.spans, strict=True) if one.window is None]
    if not static and lacking:
        hint = f"say over which time: {_EXAMPLE}; or ask of the newest rows (FROM LATEST), or of the past (HISTORY 1 day ONLY)"
        raise QueryError("a stream has no end at which an aggregate could be known", hint, lacking[0])
    revises = any(windows.REVISION in term.columns() for term in shown.terms())
    frame = None if static else _frame(found, whole=bool(select.order))
    # What is made of other streams comes behind its time.
    wait_ms = windows.WAIT_MS + (0 if static else behind_us // 1000)
    if select.wait is not None and not (static and select.tables[0].latest is not None):
        if static:
            raise QueryError("static columns wait for nothing", "leave WAIT out", select.wait.span)
        asked = select.wait.duration.milliseconds
        if asked != asked.to_integral_value() or not 0 <= asked <= _LONGEST_MS:
            hint = f"write 0 s to {duration_text(_LONGEST_MS)}"
            raise QueryError(f"WAIT {duration_text(asked)}", hint, select.wait.span)
        wait_ms = int(asked)
    return SourceGrouping(tuple(found.groups), tuple(found.aggregates), shown.having, frame, wait_ms, revises)


def _meant(node: ast.Expression, select: ast.Select) -> ast.Expression:
    """What GROUP BY names may be a column of SELECT by its name there."""
    if isinstance(node, ast.Name) and node.table is None:
        for item in select.items:
            if item.alias is not None and item.alias.lower() == node.name.lower():
                return item.expression if not isinstance(item.expression, ast.Star) else node
    return node


def _check(kind: str, argument: Term, span: ast.Span, *, distinct: bool) -> None:
    what = argument.type
    if what.endswith("[]"):
        if kind != "COUNT" or distinct:
            raise QueryError(f"{kind} is not of arrays", "COUNT says how many there are", span)
    elif kind in ("SUM", "AVG") and what not in plans.NUMBERS:
        raise QueryError(
            f"{kind} is of numbers", f"this is {what.upper()}; COUNT says how many there are", span
        )
    elif kind in ("MIN", "MAX") and what not in _ORDERED:
        raise QueryError(f"{kind} is of numbers, texts and times", "COUNT says how many there are", span)
    if distinct and kind in ("SUM", "AVG"):
        raise QueryError(
            f"{kind}(DISTINCT …) is not there", "COUNT(DISTINCT …) is, or leave DISTINCT out", span
        )


def _window(behind: tuple[ast.Expression, ...], span: ast.Span) -> Window | None:
    """Of a length and a slide, or ``start`` and a slide; None: of neither."""
    if not behind:
        return None
    if len(behind) > 2:
        raise QueryError("a window has a length and a slide", f"write {_EXAMPLE}", behind[2].span)
    first = behind[0]
    start = isinstance(first, ast.Name) and first.table is None and first.name.lower() == _START
    length = 0 if start else _time(first)
    if start and len(behind) < 2:
        hint = "say how often, as in AVG(level, start, 1 min)"
        raise QueryError("a window since the start gives a row for each slide", hint, first.span)
    slide = _time(behind[1]) if len(behind) > 1 else length
    if length and slide > length:
        hint = f"the longest slide is the length, {duration_text(length)}"
        raise QueryError(f"with a slide of {duration_text(slide)} rows would be in no window", hint, span)
    return Window(length, slide)


def _time(node: ast.Expression) -> int:
    unit = time_of(node.unit) if isinstance(node, ast.Number) else None
    if not isinstance(node, ast.Number) or unit is None:
        raise QueryError("a window's length and slide are times", f"write {_EXAMPLE}", node.span)
    time: Decimal = node.value * unit
    if time != time.to_integral_value() or not 1 <= time <= _LONGEST_MS:
        hint = f"write 1 ms to {duration_text(_LONGEST_MS)}"
        raise QueryError(f"a window of {node.value:f} {node.unit}", hint, node.span)
    return int(time)


def _frame(found: _Found, *, whole: bool) -> Frame:
    known = {one.window for one in found.aggregates if one.window is not None}
    ordered = sorted(known, key=lambda window: (window.slide_ms, window.length_ms))
    frame, span = Frame(tuple(ordered), whole), found.spans[0]
    for window in ordered:
        if window.slide_ms % frame.slide_ms:
            slides = f"{duration_text(frame.slide_ms)} and {duration_text(window.slide_ms)}"
            hint = "the shortest divides the others, or ask in two queries"
            raise QueryError(f"windows with a row for each {slides} have no rows in common", hint, span)
    pieces = max(window.length_ms for window in ordered) // frame.width_ms
    if pieces > PANES_MAXIMUM:
        hint = f"at most {PANES_MAXIMUM:,}: write a longer slide, or times that divide each other"
        raise QueryError(f"these windows are cut into {pieces:,} pieces", hint, span)
    return frame
