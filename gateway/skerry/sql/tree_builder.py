"""Lark's parse tree → the syntax tree of :mod:`skerry.sql.ast`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from lark import Token, Tree

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError, did_you_mean
from skerry.sql.join_windows import refuse_windows, window_name, with_windows
from skerry.sql.misspellings import guess_last
from skerry.sql.quoting import unquoted
from skerry.sql.units import TIME_NAMES, TIMES, time_of

#: Digits of a literal, before and behind the point together: more do not fit the gateway's 64 bits.
_DIGITS = 18

#: How often motes sample where nothing says so, in ms: a question that was put in haste costs little, and is answered soon.
DEFAULT_PERIOD_MS = 10_000

#: Clauses that a query may have several of.
_REPEATED = ("action", "nested", "buffered", "signal", "stop_on")

#: Clauses of which a query has one, besides that which says when to sample.
_SINGLE = (
    "where",
    "groups",
    "having",
    "into",
    "combine",
    "interpolate",
    "history",
    "order",
    "limit",
    "queue",
    "approximate",
    "start_now",
    "wait",
    "windows",
    "lateness",
    "using",
)

#: What FOR counts, where it is no unit of time.
_ROUNDS = ("round", "rounds", "epoch", "epochs")

_Node = Tree[Token] | Token


class TreeBuilder:
    """Builds the statement of one text."""

    def __init__(self, text: str, sensors: Collection[str] = ()) -> None:
        """``sensors``: names of the tables of sensors that are no motes, in lower case."""
        self._text, self._sensors = text, sensors

    def build(self, tree: Tree[Token]) -> ast.Statement:
        """The statement of a whole parse tree."""
        event, statement = None, _tree(next(child for child in tree.children if child is not None))
        if statement.data == "on_event":
            event, statement = _on_event(statement), _tree(tree.children[1])
        other = self._other(statement)
        if other is not None:
            return other
        select = self._select(statement, event)
        buffers = list(statement.find_data("buffered"))
        return self._buffered(select, buffers) if buffers else select

    def _other(self, tree: Tree[Token]) -> ast.Statement | None:
        """A statement that is no query; None for a query."""
        build: dict[str, Callable[[Tree[Token]], ast.Statement]] = {
            "stop": self._stop,
            "drop_all": lambda _: ast.Stop(None, self._text),
            "create": self._create,
            "create_srt": self._create_srt,
            "drop": lambda tree: ast.DropPoint(_name(_token(tree.children[-1])), self._text),
            "drop_srt": lambda tree: ast.DropSrt(_name(_token(tree.children[-1])), self._text),
        }
        return build[tree.data](tree) if tree.data in build else None

    def _buffered(self, select: ast.Select, buffers: list[Tree[Token]]) -> ast.CreatePoint:
        """``OUTPUT ACTION BUFFER(k)``: the newest k rows stay on the motes, in a storage point of that name."""
        number = _token(buffers[0].children[-1])
        if len(buffers) > 1:
            raise QueryError("BUFFER is said twice", "leave one of them out", _span(buffers[1]))
        size = ast.Number(value_of(number), None, _span(number))
        return ast.CreatePoint(
            ast.Name(f"buffer_{number}", _span(number)),
            True,
            size,
            (),
            replace(select, buffers=()),
            self._text,
        )

    def _create(self, tree: Tree[Token]) -> ast.CreatePoint:
        _, circular, _, name, _, number, unit, fields, each, _, filling = tree.children
        size = ast.Number(value_of(_token(number)), str(unit) if unit is not None else None, _span(number))
        named = [] if fields is None else [_tree(field).children for field in _tree(fields).children]
        select = None
        if filling is not None:
            query, *period = _tree(filling).children
            select = self._select(_tree(query), None, [_tree(child) for child in period if child is not None])
        elif each is not None:
            select = self._sampled([_token(field) for field, _ in named], _tree(each))
        return ast.CreatePoint(
            _name(_token(name)),
            circular is not None,
            size,
            tuple((_name(_token(field)), _name(_token(type))) for field, type in named),
            select,
            self._text,
            sampled=each is not None and filling is None,
        )

    def _sampled(self, fields: list[Token], each: Tree[Token]) -> ast.Select:
        """``(temp int16, …) SAMPLE PERIOD n``: the query for the fields, which are attributes."""
        items = tuple(ast.SelectItem(_name(field), None, _span(field)) for field in fields)
        sensors = ast.Table(ast.Name("sensors", _span(each)), None)
        return ast.Select(
            items, (sensors,), None, (), None, _sampling(each), None, False, (), (), (), (), None, (), None, self._text
        )  # fmt: skip

    def _create_srt(self, tree: Tree[Token]) -> ast.CreateSrt:
        _, _, name, _, table, *rest = tree.children
        attributes = [child for child in rest if isinstance(child, Tree) and child.data == "attribute"]
        _, root, _, policy, _, _, period = rest[len(attributes) :]
        return ast.CreateSrt(
            _name(_token(name)),
            _name(_token(table)),
            tuple(_name(_token(attribute.children[0])) for attribute in attributes),
            ast.Number(value_of(_token(root)), None, _span(_token(root))) if root is not None else None,
            _name(_token(policy)) if policy is not None else None,
            _duration(_tree(period), "SAMPLE PERIOD") if period is not None else None,
            self._text,
        )

    def _stop(self, tree: Tree[Token]) -> ast.Stop:
        number = _token(tree.children[2])
        if not number.isdigit():
            raise QueryError(f"'{number}' is no query id", "STOP QUERY takes a whole number", _span(number))
        return ast.Stop(int(value_of(number)), self._text)

    def _select(
        self, tree: Tree[Token], event: ast.OnEvent | None, behind: Sequence[Tree[Token]] = ()
    ) -> ast.Select:
        """``behind``: clauses that stand behind the parentheses around it."""
        _, no_interleave, items, *rest = tree.children
        written = [_tree(clause) for clause in (*rest, *behind) if clause is not None]
        trees = [clause for clause in written if clause.data != "source"]
        source = next((clause for clause in written if clause.data == "source"), None)
        clauses = self._clauses([clause for clause in trees if clause.data not in _REPEATED])
        tables = _with_past(_tables(source, _span(_tree(items))), clauses, written)
        where, having, groups = (clauses.get(name) for name in ("where", "having", "groups"))
        into, combine, interpolate = (clauses.get(name) for name in ("into", "combine", "interpolate"))
        order, limit = clauses.get("order"), clauses.get("limit")
        select = ast.Select(
            tuple(_item(_tree(item)) for item in _tree(items).children),
            tables,
            expression_of(where.children[1]) if where is not None else None,
            tuple(expression_of(expression) for expression in groups.children[2:])
            if groups is not None
            else (),
            expression_of(having.children[1]) if having is not None else None,
            self._when(clauses, tables, tree),
            event,
            no_interleave is not None,
            tuple(_output(clause) for clause in trees if clause.data == "action"),
            tuple(_signal(clause) for clause in trees if clause.data == "signal"),
            tuple(_span(_tree(clause.children[-1])) for clause in trees if clause.data == "nested"),
            tuple(_stop_on(clause) for clause in trees if clause.data == "stop_on"),
            _name(_token(into.children[-1])) if into is not None else None,
            tuple(map(expression_of, combine.children[1:])) if combine is not None else (),
            ast.Interpolate(_span(interpolate)) if interpolate is not None else None,
            self._text,
            _history(clauses["history"]) if "history" in clauses else None,
            tuple(_ordered(_tree(part)) for part in order.children[2:]) if order is not None else (),
            _limit(_token(limit.children[1])) if limit is not None else None,
            _queue(clauses["queue"]) if "queue" in clauses else None,
            _approximate(clauses["approximate"]) if "approximate" in clauses else None,
            tuple(_span(clause) for clause in trees if clause.data == "buffered"),
            _span(clauses["start_now"]) if "start_now" in clauses else None,
            ast.Wait(_duration(_tree(clauses["wait"].children[1]), "WAIT"), _span(clauses["wait"]))
            if "wait" in clauses
            else None,
        )
        if any(table.name.name.lower() in self._sensors for table in tables):
            # What their columns are is not known here.
            return with_windows(replace(select, of_sensors=True), clauses)
        refuse_windows(clauses)
        select = _with_event_names(select)
        _check_tables(select)
        return select

    def _when(
        self, clauses: dict[str, Tree[Token]], tables: Sequence[ast.Table], tree: Tree[Token]
    ) -> ast.SamplePeriod | ast.Once | ast.Lifetime | ast.Recorded:
        """When to sample, also where nothing says so."""
        if "sampling" in clauses:
            return _sampling(clauses["sampling"])
        past, span = clauses.get("history"), _span(tree)
        of_sensors = any(table.name.name.lower() in self._sensors for table in tables)
        if of_sensors or (past is not None and past.children[-1] is not None):
            return ast.Recorded(span)
        # A misspelt clause passes for the name of a table.
        guess = guess_last(self._text[: span.end]) if self._ends_in_alias(tables, span) else ""
        if not guess and any(table.name.name.lower() == "sensors" for table in tables):
            return ast.SamplePeriod(ast.Duration(Decimal(DEFAULT_PERIOD_MS), span), None, span, default=True)
        # What has been said already is not expected again.
        left = ["WHERE"] if "where" not in clauses else []
        words = ["ONLY", "SAMPLE PERIOD", *left] if past is not None else ["ONCE", "SAMPLE PERIOD", *left]
        raise QueryError(
            "the query ends too early",
            f"{guess}expected {', '.join(words[:-1])} or {words[-1]}",
            Span(span.end, span.end + 1),
        )

    def _ends_in_alias(self, tables: Sequence[ast.Table], span: Span) -> bool:
        said = self._text[span.start : span.end].split()
        return tables[-1].alias is not None and said[-1] == tables[-1].alias and said[-2].upper() != "AS"

    def _clauses(self, trees: list[Tree[Token]]) -> dict[str, Tree[Token]]:
        """By what they say, each once; one of them says when to sample, if any does."""
        found: dict[str, Tree[Token]] = {}
        for tree in trees:
            kind = tree.data if tree.data in _SINGLE else "sampling"
            # A table's past, which stands behind its name, is not the query's.
            kind = "past" if _is_of_table(tree) else kind
            if kind in found:
                named = {
                    "sampling": "how often to sample",
                    "groups": "GROUP BY",
                    "into": "INTO STORAGE POINT",
                    "order": "ORDER BY",
                    "start_now": "START NOW",
                    "past": "HISTORY … AS",
                }
                what = named.get(kind, kind.upper())
                raise QueryError(
                    f"{what} is said twice", "leave one of them out", _span(_token(tree.children[0]))
                )
            found[kind] = tree
        return found


def _tables(node: Any, items: Span) -> tuple[ast.Table, ...]:
    if node is None:
        return (ast.Table(ast.Name("sensors", items), None),)
    said, *tables = _tree(node).children
    latest = _span(_token(said)) if _token(said).type == "FROM_LATEST" else None
    return tuple(replace(_table(_tree(table)), latest=latest) for table in tables)


def check_called(tables: Sequence[ast.Table]) -> None:
    called = [table.called for table in tables]
    for table in tables:
        if called.count(table.called) > 1:
            hint = "give each a name of its own, as in FROM recent AS a, recent AS b"
            raise QueryError(f"two tables are called '{table.called}'", hint, table.name.span)


def _with_past(
    tables: tuple[ast.Table, ...], clauses: dict[str, Tree[Token]], trees: Sequence[Tree[Token]]
) -> tuple[ast.Table, ...]:
    """``…, sensors HISTORY 1 day AS h``: the last table is what it was in that time."""
    past = clauses.get("past")
    if past is None:
        return tables
    alias, last = _token(past.children[-1]), tables[-1]
    where = trees.index(past)
    if where == 0 or trees[where - 1].data != "source" or last.alias is not None:
        hint = "write it behind the last table of FROM, as in FROM sensors AS s, sensors HISTORY 1 day AS h"
        raise QueryError(f"nothing says of what '{alias}' is the past", hint, _span(past))
    table = ast.Table(last.name, str(alias), _duration(_tree(past.children[1]), "HISTORY"))
    return (*tables[:-1], table)


def _is_of_table(tree: Tree[Token]) -> bool:
    return tree.data == "history" and _token_type(tree.children[-1]) == "NAME"


def _token_type(node: Any) -> str | None:
    return node.type if isinstance(node, Token) else None


def _table(tree: Tree[Token]) -> ast.Table:
    table, *words = tree.children
    names = [str(word) for word in words if word is not None and _token(word).type == "NAME"]
    return ast.Table(_name(_token(table)), names[0] if names else None)


def _with_event_names(select: ast.Select) -> ast.Select:
    """The query with ``event.temp`` where it says ``hot.temp`` of the event hot that it waits for, or that stops it. Raises QueryError."""
    tables = {name.lower() for table in select.tables for name in (table.called, table.name.name)}

    def renamed(node: Any, events: Sequence[ast.Name]) -> Any:
        known = {event.name.lower() for event in events} - tables

        def change(name: ast.Name) -> ast.Name:
            if name.table is None or name.table.lower() not in known:
                return name
            if len(known) > 1:
                hint = f"write event.{name.name}: it is of the event that came last"
                raise QueryError(f"'{name.table}' is one of several events", hint, name.span)
            return replace(name, table="event")

        return ast.rewritten(node, ast.Name, change) if known else node

    stops = tuple(renamed(stop, [stop.event]) for stop in select.stops)
    if select.event is None:
        return replace(select, stops=stops)
    events = [event.name for event in select.event.events if event.every is None]
    rest: ast.Select = renamed(replace(select, stops=()), events)
    return replace(rest, stops=stops)


def _check_tables(select: ast.Select) -> None:
    """What stands before a point is the table's name, or the one that the query gives it."""
    check_called(select.tables)
    known = [name for table in select.tables for name in (table.alias, table.name.name) if name is not None]
    of_stops = list(_names(select.stops))
    for name in _names(select):
        if name.stream is not None:
            hint = "only columns of tables that CREATE SENSORS made have fields; SHOW SENSORS lists these"
            raise QueryError(f"'{name.table}.{name.stream}.{name.name}' has three parts", hint, name.span)
        if name.table is not None and name.table.lower() == "event":
            if select.event is None and name not in of_stops:
                hint = "begin with ON EVENT name, or leave it out"
                raise QueryError("this query has no event", hint, name.span)
            continue
        if name.table is not None and name.table.lower() not in [table.lower() for table in known]:
            hint = f"{did_you_mean(name.table, known)}it is {' or '.join(known)}"
            raise QueryError(f"unknown table '{name.table}'", hint, name.span)


def _names(node: Any) -> Iterator[ast.Name]:
    """All names in a part of the tree."""
    return (found for found in ast.walk(node) if isinstance(found, ast.Name))


def _tree(node: Any) -> Tree[Token]:
    assert isinstance(node, Tree)
    return node


def _token(node: Any) -> Token:
    assert isinstance(node, Token)
    return node


def _span(node: _Node) -> Span:
    place = node if isinstance(node, Token) else node.meta
    return Span(place.start_pos or 0, place.end_pos or 0)


def _name(token: Token) -> ast.Name:
    return ast.Name(str(token), _span(token), quoted=_is_quoted(token))


def _is_quoted(token: Token) -> bool:
    """Whether quotation marks stood around it, which its place in the text still has."""
    span = _span(token)
    return span.end - span.start != len(token)


def _item(tree: Tree[Token]) -> ast.SelectItem:
    if tree.data == "star":
        return ast.SelectItem(ast.Star(_span(tree)), None, _span(tree))
    expression, _, alias = tree.children
    return ast.SelectItem(expression_of(expression), str(alias) if alias is not None else None, _span(tree))


def _sampling(tree: Tree[Token]) -> ast.SamplePeriod | ast.Once | ast.Lifetime:
    if tree.data == "once":
        return ast.Once(_span(tree))
    if tree.data == "lifetime":
        *_, duration, _, least = tree.children
        return ast.Lifetime(
            _duration(_tree(duration), "LIFETIME"),
            _duration(_tree(least), "MIN SAMPLE RATE") if least is not None else None,
            _span(tree),
        )
    # Without FOR the place-holders of its word and its length are None.
    written = next(child for child in tree.children if isinstance(child, Tree))
    length = tree.children[-1]
    # TinyDB 2005, appendix B: SAMPLE PERIOD seconds; the language that TinyDB shipped counted ms.
    clause, unit = ("EPOCH DURATION", "ms") if tree.data == "epoch_duration" else ("SAMPLE PERIOD", "s")
    period = _duration(written, clause, unit)
    return ast.SamplePeriod(period, _length(_tree(length)) if length is not None else None, _span(tree))


def _history(tree: Tree[Token]) -> ast.History:
    only = tree.children[2]
    return ast.History(_duration(_tree(tree.children[1]), "HISTORY"), only is not None, _span(tree))


def _ordered(tree: Tree[Token]) -> ast.Ordered:
    expression, direction = tree.children
    descending = direction is not None and _token(direction).type == "DESC"
    return ast.Ordered(expression_of(expression), descending, _span(tree))


def _limit(token: Token) -> ast.Number:
    return ast.Number(value_of(token), None, _span(token))


def _queue(tree: Tree[Token]) -> ast.Queue:
    _, policy, _, number, *_, send = tree.children
    size = ast.Number(value_of(_token(number)), None, _span(number)) if number is not None else None
    return ast.Queue(
        _name(_token(policy)),
        size,
        _duration(_tree(send), "SEND PERIOD") if send is not None else None,
        _span(tree),
    )


def _approximate(tree: Tree[Token]) -> ast.Approximate:
    _, _, number, unit = tree.children
    span = _span(number).to(_span(unit)) if unit is not None else _span(number)
    within = ast.Number(value_of(_token(number)), str(unit) if unit is not None else None, span)
    return ast.Approximate(within, _span(tree))


def _event_name(node: Any) -> ast.Name:
    return ast.Name("".join(map(str, _tree(node).children)), _span(_tree(node)))


def _output(tree: Tree[Token]) -> ast.Output:
    *_, name, argument = tree.children
    return ast.Output(
        _event_name(name), expression_of(argument) if argument is not None else None, _span(tree)
    )


def _signal(tree: Tree[Token]) -> ast.Signal:
    trees = [_tree(child) for child in tree.children if isinstance(child, Tree)]
    name, *parameters = trees
    return ast.Signal(_event_name(name), tuple(map(expression_of, parameters)), _span(tree))


def _on_event(tree: Tree[Token]) -> ast.OnEvent:
    trees = [_tree(child) for child in tree.children if isinstance(child, Tree)]
    words = {child.type for child in tree.children if isinstance(child, Token)}
    alternatives = tuple(
        tuple(_one_event(_tree(child)) for child in of.children if isinstance(child, Tree)) for of in trees
    )
    return ast.OnEvent(alternatives, "ALIGNED" in words, "NO_OVERLAP" in words, _span(tree))


def _one_event(tree: Tree[Token]) -> ast.Event:
    name, *rest = tree.children
    event = _event_name(name)
    parameters = [_tree(child) for child in rest if child is not None]
    times = [_duration(_tree(p.children[0]), "every") for p in parameters if p.data == "parameter_time"]
    names = _named(parameters)
    if event.name.lower() != "every":
        if times:
            hint = "write ON EVENT every(10 min) for a timer"
            raise QueryError("a time is no parameter of an event", hint, times[0].span)
        return ast.Event(event, names, None, _span(tree))
    if len(times) != 1 or names:
        raise QueryError("a timer needs one time", "write ON EVENT every(10 min)", _span(tree))
    return ast.Event(event, (), times[0], _span(tree))


def _named(parameters: Sequence[Tree[Token]]) -> tuple[ast.Name, ...]:
    return tuple(_name(_token(p.children[0])) for p in parameters if p.data == "parameter_name")


def _stop_on(tree: Tree[Token]) -> ast.StopOn:
    *_, one, _, where = tree.children
    name, *rest = _tree(one).children
    parameters = [_tree(child) for child in rest if child is not None]
    for parameter in parameters:
        if parameter.data == "parameter_time":
            hint = "name an attribute of the mote that raises it, as in STOP ON EVENT hot(temp)"
            raise QueryError("a time is no parameter of an event", hint, _span(parameter))
    condition = expression_of(where) if where is not None else None
    return ast.StopOn(_event_name(name), _named(parameters), condition, _span(tree))


def _length(tree: Tree[Token]) -> ast.Duration | ast.Rounds:
    number, unit = tree.children
    if unit is None or _token(unit).lower() in _ROUNDS:
        return ast.Rounds(value_of(_token(number)), _span(tree))
    return _duration(tree)


def _duration(tree: Tree[Token], clause: str = "", unstated: str = "s") -> ast.Duration:
    """``clause``: the words before it, for what is said where no unit is written, which then is ``unstated``."""
    number, unit = tree.children
    if unit is None:
        milliseconds = value_of(_token(number)) * TIMES[unstated]
        return ast.Duration(milliseconds, _span(tree), f"{clause} {number} is {number} {unstated}")
    number, unit = _token(number), _token(unit)
    size = time_of(unit)
    if size is None:
        # m is metres elsewhere, and minutes to many.
        guess = did_you_mean("minutes" if unit == "m" else str(unit), list(TIMES))
        hint = f"{guess}times are in {', '.join(TIME_NAMES)}"
        raise QueryError(f"unknown unit of time '{unit}'", hint, _span(unit))
    return ast.Duration(value_of(number) * size, _span(tree))


def value_of(token: Token) -> Decimal:
    """A number as it is written, exactly. Raises QueryError."""
    try:
        value = Decimal(str(token))
    except InvalidOperation:
        # Not even its exponent is a number that can be reckoned with.
        raise _out_of_range(token) from None
    exponent = value.normalize().as_tuple().exponent
    behind = max(0, -exponent) if isinstance(exponent, int) else 0
    if behind + max(0, value.adjusted() + 1) > _DIGITS:
        raise _out_of_range(token)
    return value


def _out_of_range(token: Token) -> QueryError:
    return QueryError(
        f"the number {token} is out of range", f"numbers have at most {_DIGITS} digits", _span(token)
    )


def expression_of(node: Any) -> ast.Expression:
    """The expression of a part of Lark's tree. Raises QueryError."""
    tree = _tree(node)
    if tree.data in ("compared", "condition", "conjunction", "shift", "sum", "product"):
        return _chain(tree.children)
    if tree.data in ("parenthesis", "plus"):
        return expression_of(tree.children[-1])
    if tree.data in ("number", "text", "null", "name", "name_group", "call", "call_of_nothing"):
        return _primary(tree, _span(tree))
    if tree.data == "window_of":
        return window_name(tree)
    if tree.data in ("minus", "negated"):
        operator = "-" if tree.data == "minus" else "NOT"
        return ast.Unary(operator, expression_of(tree.children[1]), _span(tree))
    return _test(tree, _span(tree))


def _primary(tree: Tree[Token], span: Span) -> ast.Expression:
    children = tree.children
    if tree.data == "number":
        unit = children[1]
        return ast.Number(value_of(_token(children[0])), str(unit) if unit is not None else None, span)
    if tree.data in ("text", "null"):
        return _text(_token(children[0])) if tree.data == "text" else ast.Null(span)
    if tree.data == "name_group":  # a keyword elsewhere
        table, word = children
        return ast.Name(str(word), span, str(table) if table is not None else None)
    if tree.data == "name":
        first, *behind = [_token(child) for child in children if child is not None]
        if not behind:
            return _name(first)
        stream = str(behind[0]) if len(behind) > 1 else None
        return ast.Name(str(behind[-1]), span, str(first), _is_quoted(behind[-1]), stream)
    function, distinct, *arguments = (*children, None) if tree.data == "call_of_nothing" else children
    star = bool(arguments) and isinstance(arguments[0], Token)
    values = tuple(map(expression_of, arguments[1:] if star else arguments))
    return ast.Call(str(function), values, distinct is not None, span, star)


def _text(token: Token) -> ast.Text:
    return ast.Text(unquoted(token), _span(token))


def _test(tree: Tree[Token], span: Span) -> ast.Expression:
    children = tree.children
    operand = expression_of(children[0])
    if tree.data == "is_null":
        return ast.IsNull(operand, children[2] is not None, span)
    negated = children[1] is not None
    if tree.data == "like":
        return ast.Like(operand, _text(_token(children[3])), negated, span)
    if tree.data == "between":
        return ast.Between(operand, expression_of(children[3]), expression_of(children[5]), negated, span)
    return ast.InList(operand, tuple(expression_of(item) for item in children[3:]), negated, span)


def _chain(children: Sequence[Any]) -> ast.Expression:
    """``a op b op c`` from the left."""
    result = expression_of(children[0])
    for i in range(1, len(children), 2):
        right = expression_of(children[i + 1])
        operator = str(children[i]).upper()
        operator = "<>" if operator == "!=" else operator
        result = ast.Binary(operator, result, right, result.span.to(right.span))
    return result
