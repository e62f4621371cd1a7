"""Expressions of Lark's parse tree → those of :mod:`skerry.sql.ast`."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from lark import Token, Tree

from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError
from skerry.sql.join_windows import window_name
from skerry.sql.nodes import is_quoted, name_of, span_of, token_of, tree_of
from skerry.sql.quoting import unquoted

#: Digits of a literal, before and behind the point together: more do not fit the gateway's 64 bits.
_DIGITS = 18


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
        f"the number {token} is out of range", f"numbers have at most {_DIGITS} digits", span_of(token)
    )


def expression_of(node: Any) -> ast.Expression:
    """The expression of a part of Lark's tree. Raises QueryError."""
    tree = tree_of(node)
    if tree.data in ("compared", "condition", "conjunction", "shift", "sum", "product"):
        return _chain(tree.children)
    if tree.data in ("parenthesis", "plus"):
        return expression_of(tree.children[-1])
    if tree.data in ("number", "text", "null", "name", "name_group", "call", "call_of_nothing"):
        return _primary(tree, span_of(tree))
    if tree.data == "window_of":
        return window_name(tree)
    if tree.data in ("minus", "negated"):
        operator = "-" if tree.data == "minus" else "NOT"
        return ast.Unary(operator, expression_of(tree.children[1]), span_of(tree))
    return _test(tree, span_of(tree))


def _primary(tree: Tree[Token], span: Span) -> ast.Expression:
    children = tree.children
    if tree.data == "number":
        unit = children[1]
        return ast.Number(value_of(token_of(children[0])), str(unit) if unit is not None else None, span)
    if tree.data in ("text", "null"):
        return _text(token_of(children[0])) if tree.data == "text" else ast.Null(span)
    if tree.data == "name_group":  # a keyword elsewhere
        table, word = children
        return ast.Name(str(word), span, str(table) if table is not None else None)
    if tree.data == "name":
        first, *behind = [token_of(child) for child in children if child is not None]
        if not behind:
            return name_of(first)
        stream = str(behind[0]) if len(behind) > 1 else None
        return ast.Name(str(behind[-1]), span, str(first), is_quoted(behind[-1]), stream)
    function, distinct, *arguments = (*children, None) if tree.data == "call_of_nothing" else children
    star = bool(arguments) and isinstance(arguments[0], Token)
    values = tuple(map(expression_of, arguments[1:] if star else arguments))
    return ast.Call(str(function), values, distinct is not None, span, star)


def _text(token: Token) -> ast.Text:
    return ast.Text(unquoted(token), span_of(token))


def _test(tree: Tree[Token], span: Span) -> ast.Expression:
    children = tree.children
    operand = expression_of(children[0])
    if tree.data == "is_null":
        return ast.IsNull(operand, children[2] is not None, span)
    negated = children[1] is not None
    if tree.data == "like":
        return ast.Like(operand, _text(token_of(children[3])), negated, span)
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
