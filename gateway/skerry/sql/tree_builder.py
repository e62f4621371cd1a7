"""Lark's parse tree → the syntax tree of :mod:`skerry.sql.ast`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from decimal import Decimal

from lark import Token, Tree

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.clause_builder import (
    approximate_of,
    duration_of,
    event_of,
    history_of,
    item_of,
    limit_of,
    ordered_of,
    output_of,
    queue_of,
    sampling_of,
    signal_of,
    stop_of,
)
from skerry.sql.errors import QueryError
from skerry.sql.expression_builder import expression_of, value_of
from skerry.sql.from_builder import check_tables, is_of_table, tables_of, with_event_names, with_past
from skerry.sql.join_strategies import with_strategy
from skerry.sql.join_windows import (
    refuse_functions,
    refuse_windows,
    with_plain_joins,
    with_windows,
)
from skerry.sql.misspellings import guess_last
from skerry.sql.nodes import name_of, span_of, token_of, tree_of

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
    "every",
    "strategy",
    "estimate",
    "cost",
    "learning",
    "deliver",
)


class TreeBuilder:
    """Builds the statement of one text."""

    def __init__(self, text: str, sensors: Collection[str] = ()) -> None:
        """``sensors``: names of the tables of sensors that are no motes, in lower case."""
        self._text, self._sensors = text, sensors

    def build(self, tree: Tree[Token]) -> ast.Statement:
        """The statement of a whole parse tree."""
        event, statement = None, tree_of(next(child for child in tree.children if child is not None))
        if statement.data == "on_event":
            event, statement = event_of(statement), tree_of(tree.children[1])
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
            "drop": lambda tree: ast.DropPoint(name_of(token_of(tree.children[-1])), self._text),
            "drop_srt": lambda tree: ast.DropSrt(name_of(token_of(tree.children[-1])), self._text),
        }
        return build[tree.data](tree) if tree.data in build else None

    def _buffered(self, select: ast.Select, buffers: list[Tree[Token]]) -> ast.CreatePoint:
        """``OUTPUT ACTION BUFFER(k)``: the newest k rows stay on the motes, in a storage point of that name."""
        number = token_of(buffers[0].children[-1])
        if len(buffers) > 1:
            raise QueryError("BUFFER is said twice", "leave one of them out", span_of(buffers[1]))
        size = ast.Number(value_of(number), None, span_of(number))
        return ast.CreatePoint(
            ast.Name(f"buffer_{number}", span_of(number)),
            True,
            size,
            (),
            replace(select, buffers=()),
            self._text,
        )

    def _create(self, tree: Tree[Token]) -> ast.CreatePoint:
        _, circular, _, name, _, number, unit, fields, each, _, filling = tree.children
        size = ast.Number(
            value_of(token_of(number)), str(unit) if unit is not None else None, span_of(number)
        )
        named = [] if fields is None else [tree_of(field).children for field in tree_of(fields).children]
        select = None
        if filling is not None:
            query, *period = tree_of(filling).children
            select = self._select(
                tree_of(query), None, [tree_of(child) for child in period if child is not None]
            )
        elif each is not None:
            select = self._sampled([token_of(field) for field, _ in named], tree_of(each))
        return ast.CreatePoint(
            name_of(token_of(name)),
            circular is not None,
            size,
            tuple((name_of(token_of(field)), name_of(token_of(type))) for field, type in named),
            select,
            self._text,
            sampled=each is not None and filling is None,
        )

    def _sampled(self, fields: list[Token], each: Tree[Token]) -> ast.Select:
        """``(temp int16, …) SAMPLE PERIOD n``: the query for the fields, which are attributes."""
        items = tuple(ast.SelectItem(name_of(field), None, span_of(field)) for field in fields)
        sensors = ast.Table(ast.Name("sensors", span_of(each)), None)
        return ast.Select(
            items, (sensors,), None, (), None, sampling_of(each), None, False, (), (), (), (), None, (), None, self._text
        )  # fmt: skip

    def _create_srt(self, tree: Tree[Token]) -> ast.CreateSrt:
        _, _, name, _, table, *rest = tree.children
        attributes = [child for child in rest if isinstance(child, Tree) and child.data == "attribute"]
        _, root, _, policy, _, _, period = rest[len(attributes) :]
        return ast.CreateSrt(
            name_of(token_of(name)),
            name_of(token_of(table)),
            tuple(name_of(token_of(attribute.children[0])) for attribute in attributes),
            ast.Number(value_of(token_of(root)), None, span_of(token_of(root))) if root is not None else None,
            name_of(token_of(policy)) if policy is not None else None,
            duration_of(tree_of(period), "SAMPLE PERIOD") if period is not None else None,
            self._text,
        )

    def _stop(self, tree: Tree[Token]) -> ast.Stop:
        number = token_of(tree.children[2])
        if not number.isdigit():
            raise QueryError(f"'{number}' is no query id", "STOP QUERY takes a whole number", span_of(number))
        return ast.Stop(int(value_of(number)), self._text)

    def _select(
        self, tree: Tree[Token], event: ast.OnEvent | None, behind: Sequence[Tree[Token]] = ()
    ) -> ast.Select:
        """``behind``: clauses that stand behind the parentheses around it."""
        _, no_interleave, items, *rest = tree.children
        written = [tree_of(clause) for clause in (*rest, *behind) if clause is not None]
        trees = [clause for clause in written if clause.data != "source"]
        source = next((clause for clause in written if clause.data == "source"), None)
        clauses = self._clauses([clause for clause in trees if clause.data not in _REPEATED])
        tables = with_past(tables_of(source, span_of(tree_of(items))), clauses, written)
        where, having, groups = (clauses.get(name) for name in ("where", "having", "groups"))
        into, combine, interpolate = (clauses.get(name) for name in ("into", "combine", "interpolate"))
        order, limit = clauses.get("order"), clauses.get("limit")
        select = ast.Select(
            tuple(item_of(tree_of(item)) for item in tree_of(items).children),
            tables,
            expression_of(where.children[1]) if where is not None else None,
            tuple(expression_of(expression) for expression in groups.children[2:])
            if groups is not None
            else (),
            expression_of(having.children[1]) if having is not None else None,
            self._when(clauses, tables, tree),
            event,
            no_interleave is not None,
            tuple(output_of(clause) for clause in trees if clause.data == "action"),
            tuple(signal_of(clause) for clause in trees if clause.data == "signal"),
            tuple(span_of(tree_of(clause.children[-1])) for clause in trees if clause.data == "nested"),
            tuple(stop_of(clause) for clause in trees if clause.data == "stop_on"),
            name_of(token_of(into.children[-1])) if into is not None else None,
            tuple(map(expression_of, combine.children[1:])) if combine is not None else (),
            ast.Interpolate(span_of(interpolate)) if interpolate is not None else None,
            self._text,
            history_of(clauses["history"]) if "history" in clauses else None,
            tuple(ordered_of(tree_of(part)) for part in order.children[2:]) if order is not None else (),
            limit_of(token_of(limit.children[1])) if limit is not None else None,
            queue_of(clauses["queue"]) if "queue" in clauses else None,
            approximate_of(clauses["approximate"]) if "approximate" in clauses else None,
            tuple(span_of(clause) for clause in trees if clause.data == "buffered"),
            span_of(clauses["start_now"]) if "start_now" in clauses else None,
            ast.Wait(duration_of(tree_of(clauses["wait"].children[1]), "WAIT"), span_of(clauses["wait"]))
            if "wait" in clauses
            else None,
        )
        select = with_strategy(with_plain_joins(select), clauses)
        if any(table.name.name.lower() in self._sensors for table in tables):
            # What their columns are is not known here.
            return with_windows(replace(select, of_sensors=True), clauses)
        if select.strategy is not None:
            return with_windows(select, clauses)
        refuse_windows(select, clauses)
        refuse_functions(tables, self._sensors)
        select = with_event_names(select)
        check_tables(select)
        return select

    def _when(
        self, clauses: dict[str, Tree[Token]], tables: Sequence[ast.Table], tree: Tree[Token]
    ) -> ast.SamplePeriod | ast.Once | ast.Lifetime | ast.Recorded:
        """When to sample, also where nothing says so."""
        if "sampling" in clauses:
            return sampling_of(clauses["sampling"])
        past, span = clauses.get("history"), span_of(tree)
        of_sensors = any(table.name.name.lower() in self._sensors for table in tables)
        if of_sensors or (past is not None and past.children[-1] is not None):
            return ast.Recorded(span)
        refuse_functions(tables, self._sensors)
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
            kind = "past" if is_of_table(tree) else kind
            if kind in found:
                named = {
                    "sampling": "how often to sample",
                    "groups": "GROUP BY",
                    "into": "INTO STORAGE POINT",
                    "order": "ORDER BY",
                    "start_now": "START NOW",
                    "windows": "WINDOW",
                    "past": "HISTORY … AS",
                    "strategy": "where motes' rows are joined",
                    "deliver": "DELIVER WITHIN",
                }
                what = named.get(kind, kind.upper())
                raise QueryError(
                    f"{what} is said twice", "leave one of them out", span_of(token_of(tree.children[0]))
                )
            found[kind] = tree
        return found
