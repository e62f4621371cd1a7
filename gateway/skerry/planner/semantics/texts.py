"""What texts are compared with: columns of texts with texts, and times with moments that are written as texts."""

from __future__ import annotations

from datetime import UTC as UTC_ZONE
from datetime import datetime

from skerry.expressions import build
from skerry.expressions.expression import TEXT_LEAF, Expr, Kind, render
from skerry.expressions.unit_algebra import UTC
from skerry.sql import ast
from skerry.sql.ast import Span
from skerry.sql.errors import QueryError
from skerry.sql.quoting import as_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC_ZONE)
_MICROSECOND_DIGITS = 6
_HINT = "compare a column of a table with it, as in p.plot = 'north'"


def comparable(
    left: Expr, right: Expr, left_node: ast.Expression, right_node: ast.Expression
) -> tuple[Expr, Expr]:
    """Both sides of a comparison, of which one at least is a text, as texts, as moments, or one of them as NULL. Raises QueryError."""
    if Kind.NULL in (left.kind, right.kind):
        return left, right
    if left.kind is right.kind is Kind.TEXT:
        if is_written(left) and is_written(right):
            span = left_node.span.to(right_node.span)
            raise QueryError("both sides are texts that stand in the query", _HINT, span)
        return left, right
    text, text_node, other = (left, left_node, right) if left.kind is Kind.TEXT else (right, right_node, left)
    written = is_written(text)
    if other.unit == UTC and written:
        moment = _moment(str(text.final[1]), text_node.span)
        return (moment, other) if text is left else (other, moment)
    what = {Kind.NUMBER: "a number", Kind.CONDITION: "a condition"}.get(other.kind, "a list")
    if other.unit == UTC:
        what = "a time"
    hint = "compare it with a text, as in p.plot = 'north'"
    if written:
        marks = f"numbers stand without marks, as in {render(other)} = 25"
        hint = marks if other.kind is Kind.NUMBER else "compare texts with columns of texts"
    raise QueryError(f"{render(text)} is a text, and {render(other)} is {what}", hint, text_node.span)


def is_written(expr: Expr) -> bool:
    """Whether it is a text of the query's own."""
    return expr.final[:1] == (TEXT_LEAF,)


def misplaced(node: ast.Text) -> QueryError:
    """A text that is compared with nothing."""
    return QueryError(f"{as_text(node.text)} is a text, which no column of motes is", _HINT, node.span)


def _moment(text: str, span: Span) -> Expr:
    """A moment in ISO 8601, UTC where it does not say otherwise, to the microsecond."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        hint = "write it as '2026-05-01', '2026-05-01 12:30' or '2026-05-01T12:30:00+02:00'; without a zone it is UTC"
        raise QueryError(f"'{text}' is no moment", hint, span) from None
    moment = moment.replace(tzinfo=UTC_ZONE) if moment.tzinfo is None else moment
    since = moment - _EPOCH
    microseconds = (since.days * 86_400 + since.seconds) * 10**_MICROSECOND_DIGITS + since.microseconds
    return build.number(microseconds, _MICROSECOND_DIGITS, UTC)
